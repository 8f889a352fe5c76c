package reduce

import "github.com/contextd/contextd/internal/budget"

// stage is a reducer's place in the pipeline.
type stage struct {
	reducer
	// freer is the reducer, if a forced cut asks it for tokens; otherwise nil.
	freer freer
	// tier is the part of the view that the reducer makes smaller. The reducer is asked for tokens if the tier is
	// over its cap.
	tier budget.Tier
	// excess returns by how many tokens a view is over the reducer's own limits; nil if it has none.
	excess func(View, budget.Budget) uint64
}

// stages lists the reducers in the order in which they run, which is also the order in
// which a forced cut asks them.
func (p *Pipeline) stages() []stage {
	return []stage{
		{reducer: duplicates{p.policy.Duplicates, p.retention.texts, &p.conv.results}},
		{reducer: p.retention, freer: p.retention, tier: budget.TierToolResults},
		{reducer: p.clipping},
		{reducer: thinking{p.policy.Thinking.KeepTurns}},
		{reducer: p.window, freer: p.window, tier: budget.TierDialogue, excess: p.window.excess},
	}
}

// run applies the reducer's decisions, and measures how many tokens that frees.
func (s stage) run(v View, state State) (View, Step) {
	out, step := s.Reduce(v, state)
	step.Reducer = s.Name()
	step.TokensBefore, step.TokensAfter = v.Tokens(), out.Tokens()
	return out, step
}
