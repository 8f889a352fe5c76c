package reduce

import (
	"github.com/contextd/contextd/internal/budget"
)

// reducer makes a view smaller. It is pure: it uses no clock and no randomness, and keeps nothing between calls.
type reducer interface {
	// Name is the reducer's name in steps, reports and metrics.
	Name() string
	// Reduce applies the decisions recorded in s to v. It makes no new ones.
	Reduce(v View, s State) (View, Step)
}

// freer is a reducer that can be asked to free tokens.
type freer interface {
	reducer
	// Free makes new decisions about v, which shows the decisions of s, from the oldest group on, until they would
	// free d.Tokens or nothing more may be changed. It returns s with these decisions recorded, and does not change
	// v: the pipeline runs again from the returned state, as every later reduction does.
	Free(v View, s State, d demand) State
}

// demand says what a freer must free.
type demand struct {
	// Tokens is how many tokens to free.
	Tokens uint64
	// Budget is the budget of the view.
	Budget budget.Budget
	// KeepTurns is how many of the newest turns to spare as long as the target has room for them.
	KeepTurns uint32
	// AnySize permits to evict results of any size. The policy's minimum size is only for evictions for which no
	// caller asked.
	AnySize bool
}

// Step is what one reducer did in an assembly.
type Step struct {
	Reducer                   string
	TokensBefore, TokensAfter uint64
	// Touched is how many blocks or groups it changed, including those of earlier decisions.
	Touched int
	// Note says what it did and did not do, and why.
	Note string
}
