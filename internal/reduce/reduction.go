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
	// budget is that of the view: what is reserved is taken off its target, which is less
	// after a rejection. The view may take limit if nothing makes it smaller.
	budget budget.Budget
	limit  uint64
	// evicted is the view at the start with the rules by age moved up to the head; nil if
	// it was not needed. tried says that it may be taken.
	evicted *Result
	tried   bool
	// named are the results that roots name; nil where that was not asked.
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

// A context after one that was refused as too long takes at most a part of that, or a size which
// no model refuses.
const (
	afterRejection      = 0.8
	leastAfterRejection = 500
)

// start begins a reduction with what the state shows.
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

// keepTurns is how many of the newest turns are spared.
func (r *reduction) keepTurns() uint32 {
	if r.ask.KeepLastTurns > 0 {
		return r.ask.KeepLastTurns
	}
	return r.policy.Collapse.KeepLastTurns
}

// demand asks a reducer for so many tokens, under the budget and the policy.
func (r *reduction) demand(tokens uint64) demand {
	return demand{Tokens: tokens, Budget: r.budget, KeepTurns: r.keepTurns()}
}

// apply returns what a state shows, from the cache where it can.
func (p *Pipeline) apply(s State) Result {
	if !p.incremental(s) {
		return p.reduce(s)
	}
	known := p.conv.cached.find(p, s)
	if known == nil {
		known = &cachedResult{policy: p.policy, decided: p.digests.decided, state: s, result: p.reduce(s), groups: len(p.conv.groups)}
		known.state.AskedAsOf = 0
		known.result.View.items = slices.Clip(known.result.View.items) // others may be of the same groups
		if p.ended() != nil {
			return known.result // start and Run say so
		}
		p.conv.cached.tried = append(p.conv.cached.tried, known)
	}
	now := known.result
	now.State, now.View.ended = s, p.err
	return now
}

// reduce runs every reducer over the view that the state resumes.
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

// batch moves the rules by age up to the head if that is due.
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

// aged is what a state shows with the rules by age moved up to the head.
func (r *reduction) aged(s State) Result {
	if r.evicted == nil {
		candidate := r.apply(r.evict(s))
		r.evicted = &candidate
	}
	return *r.evicted
}

// evict moves the rules by age up to the head.
func (r *reduction) evict(s State) State {
	s.EvictedAsOf, s.EvictedTurn = r.conv.head, r.conv.turns
	return r.unroot(s, s.CollapsedThrough)
}

// cutAsNeeded cuts because that pays, or as the budget forces it and as it is asked for, if any of these
// is so.
func (r *reduction) cutAsNeeded(now Result) Result {
	switch share := r.budget.Share(r.policy.Collapse.Depth()); {
	case r.ask.Goal == 0 && r.cutPays(now, share):
		return r.cut(now, share, "", "a cut pays")
	case r.budget.Target < r.limit:
		return r.cut(now, r.ask.Goal, r.ask.Strategy, fmt.Sprintf("the context before was refused as too long at %d tokens", r.ask.Rejected))
	default:
		return r.cut(now, r.ask.Goal, r.ask.Strategy, "the budget forced it")
	}
}

// cut takes what the budget forces, and what a goal asks for that is to be reached by a
// strategy: it brings the view, or the tier that is over its cap, down to the fraction
// that a forced cut leaves, so that the next is many turns away. The prefix is written
// again in any case, so everything that is due goes with it. Where it is not the target
// that is exceeded and hardly anything can be done, nothing is: rewriting the prefix for
// that every turn would cost more.
func (r *reduction) cut(start Result, goal uint64, strategy Strategy, why string) Result {
	stages := slices.DeleteFunc(r.stages(), func(s stage) bool { return s.freer == nil })
	var asked uint64
	for _, s := range stages {
		asked = max(asked, r.excess(s, start.View, start.View, goal, strategy))
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
		d := r.demand(r.excess(s, start.View, now.View, goal, strategy))
		d.ToSummary = r.ask.Strategy == Summarize
		now = r.free(s.freer, now, d)
	}
	const leastProgress = 10 // a tenth of what was asked for
	if start.View.Tokens() <= r.budget.Target && now.View.Tokens()+asked/leastProgress > start.View.Tokens() {
		return start
	}
	now.note(why)
	return now
}

// excess is how many tokens a stage should free of now: what is above the fraction that a
// forced cut leaves, if the view at the start was over the target, or the stage's own part
// over its cap; what is above its own limits; and what is above the goal.
func (r *reduction) excess(s stage, start, now View, goal uint64, strategy Strategy) uint64 {
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
	if goal > 0 && s.serves(strategy) {
		over(start.Tokens(), now.Tokens(), goal, goal)
	}
	return excess
}

// free applies what a reducer decides on a demand, unless that would free nothing.
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

// keepForNext keeps what the next reduction goes on from, and forgets what it has no use for. before is the
// state that this one began with.
func (r *reduction) keepForNext(before State, now Result) {
	if before.CollapsedThrough > 0 && now.State.CollapsedThrough > before.CollapsedThrough {
		r.conv.texts.forget(now.State.CollapsedThrough) // where it begins, others may, too
	}
	r.conv.texts.bound(r.conv.bytes)
	r.conv.cached.keep(r.Pipeline, now.State)
}

// noteOverCap says where results exceed their cap that nothing may evict.
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
