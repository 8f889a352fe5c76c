package reduce

import (
	"github.com/contextd/contextd/internal/budget"
)

// reducer makes a view smaller. It is a pure function: no clock, no randomness,
// no memory of its own.
type reducer interface {
	// Name is the reducer's name in steps, reports and metrics.
	Name() string
	// Reduce returns v as the decisions recorded in s show it. It takes no new ones.
	Reduce(v View, s State) (View, Step)
}

// freer is a reducer that can be asked to free tokens.
type freer interface {
	reducer
	// Free takes new decisions about v, which shows those of s, oldest groups first, until
	// they would free d.Tokens or nothing remains that it may touch. It returns the state
	// that records them. They show when the pipeline runs again from that state, which is
	// how every later reduction shows them, too.
	Free(v View, s State, d demand) State
}

// demand is what a freer is asked for.
type demand struct {
	// Tokens is how many to free.
	Tokens uint64
	// Budget is that of the view.
	Budget budget.Budget
	// KeepTurns is how many of the newest turns are spared where the target has room for
	// them.
	KeepTurns uint32
	// ToSummary has a cut end where the newest summary does, whatever that frees.
	ToSummary bool
	// AnySize takes results of any size: a policy's minimum is for what nobody asked for.
	AnySize bool
}

// Step is what one reducer did in an assembly.
type Step struct {
	Reducer                   string
	TokensBefore, TokensAfter uint64
	// Touched is how many blocks or groups it changed, decisions taken earlier
	// included.
	Touched int
	// Note says what it did and why, and what it did not touch and why.
	Note string
}
