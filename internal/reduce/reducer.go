package reduce

import (
	"github.com/contextd/contextd/internal/budget"
)

// reducer makes a view smaller. It is a pure function: no clock, no randomness,
// no memory of its own.
type reducer interface {
	// Name is the reducer's name in steps, reports and metrics.
	Name() string
	// Reduce applies the decisions recorded in s to v. It makes no new ones.
	Reduce(v View, s State) (View, Step)
}

// freer is a reducer that can be asked to free tokens.
type freer interface {
	reducer
	// Free makes new decisions about v, which shows the decisions of s. It goes from the oldest group on
	// until they would free d.Tokens or nothing remains that it may touch, and returns s with these
	// decisions recorded. It does not change v: the pipeline runs again from the returned state, as every
	// later reduction does.
	Free(v View, s State, d demand) State
}

// demand is what a freer is asked for.
type demand struct {
	// Tokens is how many to free.
	Tokens uint64
	// Budget is that of the view.
	Budget budget.Budget
	// KeepTurns is how many of the newest turns are spared as long as the target has room for them.
	KeepTurns uint32
	// ToSummary makes a cut end exactly where the newest summary ends, however little that frees.
	ToSummary bool
	// AnySize allows results of any size to be evicted. The policy's minimum size holds only for evictions
	// that nobody asked for.
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
