package reduce

import "github.com/contextd/contextd/internal/budget"

// Reducer makes a view smaller. It is a pure function: no clock, no randomness,
// no memory of its own.
//
// The view that Reduce returns shows the decisions recorded in s. Where b.Excess
// is greater than zero Reduce also looks for new ones, oldest groups first, until
// they would free so many tokens or nothing is left that it may touch, and returns
// the state that records them; otherwise the state is s. New decisions show when
// the pipeline runs again from that state, which is how every later run will show
// them too.
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
