package reduce

import (
	"slices"

	"github.com/contextd/contextd/internal/budget"
)

// Reducer makes a view smaller. It is a pure function: no clock, no randomness,
// no memory of its own.
type Reducer interface {
	// Name is the reducer's name in steps, reports and metrics.
	Name() string
	// Reduce returns v as the decisions recorded in s show it. It takes no new ones.
	Reduce(v View, s State) (View, Step)
}

// Freer is a Reducer that can be asked to free tokens.
type Freer interface {
	Reducer
	// Free takes new decisions about v, which shows those of s, oldest groups first, until
	// they would free d.Tokens or nothing remains that it may touch. It returns the state
	// that records them. They show when the pipeline runs again from that state, which is
	// how every later run shows them, too.
	Free(v View, s State, d Demand) State
}

// Demand is what a Freer is asked for.
type Demand struct {
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

// stage is a reducer's place in the pipeline.
type stage struct {
	Reducer
	// freer is the reducer where a forced cut asks it for tokens; nil otherwise.
	freer Freer
	// tier is the part of the view that it makes smaller: a cap on it demands tokens.
	tier budget.Tier
	// strategies are those that call for it.
	strategies []Strategy
	// excess is by how many tokens a view exceeds limits of the reducer's own; nil if it has none.
	excess func(View, budget.Budget) uint64
}

// stages lists the reducers in the order in which they run, which is also the order in
// which a forced cut asks them.
func (p *Pipeline) stages() []stage {
	return []stage{
		{Reducer: duplicates{p.policy.Duplicates, p.conv.texts}},
		{Reducer: p.retention, freer: p.retention, tier: budget.TierToolResults, strategies: []Strategy{Mask}},
		{Reducer: p.clipping},
		{Reducer: thinking{p.policy.Thinking}},
		{Reducer: p.window, freer: p.window, tier: budget.TierDialogue, strategies: []Strategy{Drop, Summarize}, excess: p.window.excess},
	}
}

// serves reports whether a strategy calls for the stage; the empty one calls for all.
func (s stage) serves(strategy Strategy) bool {
	return strategy == "" || slices.Contains(s.strategies, strategy)
}

// run has the reducer show its decisions, and measures it.
func (s stage) run(v View, state State) (View, Step) {
	out, step := s.Reduce(v, state)
	step.Reducer = s.Name()
	step.TokensBefore, step.TokensAfter = v.Tokens(), out.Tokens()
	return out, step
}
