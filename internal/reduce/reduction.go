package reduce

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
)

// reduction is one pass of a pipeline's reducers over a conversation.
type reduction struct {
	*Pipeline
	ask Ask
	// budget is the budget of the view. Its target is without what is reserved, and lower after a rejection. A view
	// that nothing makes smaller may take limit.
	budget budget.Budget
	limit  uint64
	// evicted caches the result of the state at the start with the rules by age evaluated at the head. tried says
	// that batch considered it, so that a cut may include it.
	evicted *Result
	tried   bool
	// named are the results that roots name; nil if roots are not used.
	named map[eventlog.Place]bool
}

func (p *Pipeline) newReduction(b budget.Budget, ask Ask) *reduction {
	r := &reduction{Pipeline: p, ask: ask, budget: b}
	r.limit = b.Target - min(ask.Reserved, b.Target)
	r.budget.Target = r.limit
	if ask.Rejected > 0 && !p.policy.Whole {
		smaller := max(leastAfterRejection, fraction(ask.Rejected, afterRejection))
		r.budget.Target = min(r.limit, max(leastDigest, smaller-min(ask.Reserved, smaller)))
	}
	return r
}

// After a context was refused as too long, the next one takes at most this part of it, but may always take
// leastAfterRejection tokens, which no model refuses.
const (
	afterRejection      = 0.8
	leastAfterRejection = 500
)

// start begins a reduction with the result of the state.
func (p *Pipeline) start(b budget.Budget, s State, ask Ask) (*reduction, Result, error) {
	r := p.newReduction(b, ask)
	before := s
	target := b.Target
	if r.budget.Target < r.limit && !p.policy.Window.StrictAnchor {
		target = r.budget.Target + ask.Reserved
	}
	s, err := r.firstLimits(s, target)
	if err != nil {
		return r, Result{}, err
	}
	now := r.root(r.apply(r.rootedAtFirst(before, s)))
	return r, now, p.ended()
}

// keepTurns returns how many of the newest turns are spared.
func (r *reduction) keepTurns() uint32 {
	if r.ask.KeepLastTurns > 0 {
		return r.ask.KeepLastTurns
	}
	return r.policy.Collapse.KeepLastTurns
}

// demand returns a demand for tokens under the reduction's budget and policy.
func (r *reduction) demand(tokens uint64) demand {
	return demand{Tokens: tokens, Budget: r.budget, KeepTurns: r.keepTurns()}
}

// apply returns the result of a state, from the cache if possible.
func (p *Pipeline) apply(s State) Result {
	if !p.incremental(s) {
		return p.reduce(s)
	}
	known := p.conv.cached.find(p, s)
	if known == nil {
		known = &cachedResult{policy: p.policy, decided: p.digests.decided, state: s, result: p.reduce(s), groups: len(p.conv.groups)}
		known.state.AskedAsOf = 0
		known.result.View.items = slices.Clip(known.result.View.items) // another view may share the array
		if p.ended() != nil {
			return known.result // start and Run say so
		}
		p.conv.cached.tried = append(p.conv.cached.tried, known)
	}
	now := known.result
	now.State, now.View.ended = s, p.err
	return now
}

// reduce runs every reducer over the view that Resume returns for a state.
func (p *Pipeline) reduce(s State) Result {
	now := Result{View: p.Resume(s), State: s}
	for _, stage := range p.stages() {
		if p.ended() != nil {
			return now
		}
		var step Step
		now.View, step = stage.run(now.View, s)
		now.Steps = append(now.Steps, step)
	}
	return now
}

// batch evaluates the rules by age at the head if a batch is due.
func (r *reduction) batch(now Result) Result {
	if now.State.EvictedAsOf >= r.conv.head || r.ended() != nil {
		return now
	}
	r.tried = true
	freed, rewritten, known := r.agedTokens(now)
	if !known {
		after := r.aged(now.State).View
		freed, rewritten = now.View.Tokens()-min(now.View.Tokens(), after.Tokens()), rewrittenTokens(now.View, after)
	}
	due, why := r.due(now, freed, rewritten)
	if !due {
		return now
	}
	candidate := r.aged(now.State)
	candidate.note("batch: " + why)
	return candidate
}

// aged returns the result of the state at the start with the rules by age evaluated at the head.
func (r *reduction) aged(s State) Result {
	if r.evicted == nil {
		candidate := r.apply(r.evict(s))
		r.evicted = &candidate
	}
	return *r.evicted
}

// evict returns the state with the watermark of the rules by age moved to the head.
func (r *reduction) evict(s State) State {
	s.EvictedAsOf, s.EvictedTurn = r.conv.head, r.conv.turns
	return r.unroot(s, s.CollapsedThrough)
}

// cutAsNeeded makes a cut if one pays, or if the budget forces one.
func (r *reduction) cutAsNeeded(now Result) Result {
	switch share := r.budget.Share(r.policy.Collapse.Depth()); {
	case r.cutPays(now, share):
		return r.cut(now, share, "a cut pays")
	case r.budget.Target < r.limit:
		return r.cut(now, 0, fmt.Sprintf("the context before was refused as too long at %d tokens", r.ask.Rejected))
	default:
		return r.cut(now, 0, "the budget forced it")
	}
}

// cut frees as much as the budget forces, and what is above a goal; 0 is none. It brings the view, or the tier that is
// over its cap, down to the fraction of a forced cut, so that the next cut is many turns away. A cut rewrites the
// prefix in any case, so it also makes the evictions that are due. If the target is not exceeded and hardly anything
// could be freed, it does nothing: to rewrite the prefix for that at every turn would cost too much.
func (r *reduction) cut(start Result, goal uint64, why string) Result {
	stages := slices.DeleteFunc(r.stages(), func(s stage) bool { return s.freer == nil })
	var asked uint64
	for _, s := range stages {
		asked = max(asked, r.excess(s, start.View, start.View, goal))
	}
	if asked == 0 {
		return start
	}
	now := start
	if now.State.EvictedAsOf < r.conv.head && r.tried {
		now = r.aged(now.State)
	}
	if s := r.unroot(now.State, 0); len(s.Rooted) < len(now.State.Rooted) {
		now = r.apply(s)
	}
	for _, s := range stages {
		now = r.free(s.freer, now, r.demand(r.excess(s, start.View, now.View, goal)))
	}
	const leastProgress = 10 // a tenth of what was asked
	if start.View.Tokens() <= r.budget.Target && now.View.Tokens()+asked/leastProgress > start.View.Tokens() {
		return start
	}
	now.note(why)
	return now
}

// excess returns how many tokens a stage should free of now. It is the largest of three: what is above the fraction
// of a forced cut, if the view at the start was over the target or the stage's tier over its cap; what is above the
// stage's own limits; and what is above the goal.
func (r *reduction) excess(s stage, start, now View, goal uint64) uint64 {
	var excess uint64
	over := func(before, used, limit, goal uint64) {
		if before > limit && used > goal {
			excess = max(excess, used-goal)
		}
	}
	down := func(limit uint64) uint64 { return fraction(limit, r.policy.Collapse.To) }
	over(start.Tokens(), now.Tokens(), r.budget.Target, down(r.budget.Target))
	if limit, ok := r.budget.Caps[s.tier]; ok {
		over(start.TierTokens()[s.tier], now.TierTokens()[s.tier], limit, down(limit))
	}
	if s.excess != nil {
		excess = max(excess, s.excess(now, r.budget))
	}
	if goal > 0 {
		over(start.Tokens(), now.Tokens(), goal, goal)
	}
	return excess
}

// free applies the decisions of a reducer for a demand, if they make the view smaller.
func (r *reduction) free(f freer, now Result, d demand) Result {
	if d.Tokens == 0 {
		return now
	}
	return r.adopt(now, f.Free(now.View, now.State, d))
}

// adopt applies a state if its view is smaller.
func (r *reduction) adopt(now Result, s State) Result {
	if reflect.DeepEqual(s, now.State) {
		return now
	}
	if next := r.apply(s); next.View.Tokens() < now.View.Tokens() {
		return next
	}
	return now
}

// keepForNext caches what the next reduction needs, and drops the rest. before is the state from which this reduction
// started.
func (r *reduction) keepForNext(before State, now Result) {
	if before.CollapsedThrough > 0 && now.State.CollapsedThrough > before.CollapsedThrough {
		r.conv.texts.forget(now.State.CollapsedThrough) // not at a first cut: another fingerprint may still begin there
	}
	r.conv.texts.bound(r.conv.bytes)
	r.conv.cached.keep(r.Pipeline, now.State)
}

// noteOverCap adds a note if the results exceed their cap and some of them may not be evicted.
func (r *reduction) noteOverCap(now *Result) {
	limit, ok := r.budget.Caps[budget.TierToolResults]
	if !ok {
		return
	}
	used := now.View.TierTokens()[budget.TierToolResults]
	if held := r.retention.heldTokens(now.View); used > limit && held > 0 {
		now.note(fmt.Sprintf("results take %d tokens, %d more than their cap; %d of them may not be evicted", used, used-limit, held))
	}
}
