package reduce

import "github.com/contextd/contextd/internal/budget"

// Reducer makes a view smaller. It is a pure function: no clock, no randomness,
// no memory of its own.
//
// Reduce applies the decisions recorded in s to the view. Where b.Excess is
// greater than zero it also takes new ones, oldest groups first, until they free
// so many tokens or nothing is left that it may touch, and returns a state that
// records them. Applied to the same log, the returned state without an excess
// gives the returned view again.
type Reducer interface {
	// Name is the reducer's name in steps, reports and metrics.
	Name() string
	Reduce(v View, b budget.Budget, s State) (View, State, Step)
}

// step runs a reducer and measures it.
func step(r Reducer, v View, b budget.Budget, s State) (View, State, Step) {
	out, next, st := r.Reduce(v, b, s)
	st.Reducer = r.Name()
	st.TokensBefore, st.TokensAfter = v.Tokens(), out.Tokens()
	return out, next, st
}
