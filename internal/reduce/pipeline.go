// Package reduce turns a log into a view that fits a budget.
//
// A [Conversation] gathers events into atomic groups as the log grows. A [View]
// is an immutable sequence of those groups with what was done to them; its only
// verbs are stub, clip, omit thinking and collapse a leading run, so a reducer
// cannot split a group, reorder, touch what is pinned, or do more to the anchor and
// to what a human said last than clip their texts. A [Pipeline] runs [Reducer]s from
// cheap to expensive. What they decided is the [State]: watermarks that only move
// forward, so that a context once sent stays a prefix of the next one until a rewrite
// is due.
//
// The package is pure: the same events, policy, budget and state give the same
// view on every machine.
package reduce

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Pipeline runs the reducers of a policy from cheap to expensive.
type Pipeline struct {
	policy  Policy
	conv    *Conversation
	digests *digests
	// The reducers that are asked for tokens; stages lists all.
	retention retention
	clipping  clipping
	window    window
	// named says which results roots name; nil if there are no roots.
	named func(View) map[eventlog.Place]bool
	// err says why the run should end; nil if nothing ends it.
	err func() error
}

// NewPipeline returns the pipeline that reduces conv by policy and may quote any of
// the summaries, oldest first. It shares conv's owner.
func NewPipeline(policy Policy, conv *Conversation, summaries ...Summary) *Pipeline {
	// A rule by age that always holds is no caller's compaction.
	policy.ToolResults.Strict = policy.ToolResults.Strict && !policy.Whole
	p := &Pipeline{policy: policy, conv: conv}
	conv.runs.tried = nil
	p.digests = &digests{
		conv: conv, groups: conv.lend(), reminders: conv.reminders, gauge: conv.gauge, policy: policy.Collapse, recall: policy.Recall,
		memos: &conv.digests, summaries: summaries, decided: conv.Decided(), ended: p.ended,
		boundary: conv.boundary.seq,
	}
	texts := writer{conv.texts, policy.Recall}
	p.retention = retention{
		policy: policy.ToolResults, rules: conv.rulesOf(policy.ToolResults), texts: texts, head: conv.head, turns: conv.turns,
		digests: p.digests, ended: p.ended,
	}
	p.clipping = clipping{policy.Clipping, texts}
	p.digests.protection = p.retention.protection
	p.window = window{policy: policy.Window, collapse: policy.Collapse, digests: p.digests, retention: p.retention}
	return p
}

// Until has runs end with the error of ctx, at the next group or reducer. What a run kept
// for the next one by then is whole.
func (p *Pipeline) Until(ctx context.Context) *Pipeline {
	p.err = ctx.Err
	return p
}

// ended returns why the run should end, if it should.
func (p *Pipeline) ended() error {
	if p.conv.missing {
		return ErrIncomplete
	}
	if p.err == nil {
		return nil
	}
	return p.err()
}

// Result is a reduced view and how it came about.
type Result struct {
	View  View
	State State
	Steps []Step
	// Start is what the state before the run showed; nil but after Run.
	Start *Result
}

func (r *Result) note(s string) {
	if len(r.Steps) > 0 {
		r.Steps = slices.Clone(r.Steps)
		r.Steps[0].Note = s + "; " + r.Steps[0].Note
	}
}

// Ask is what a run is to do beside coming under the target. The zero value asks
// for nothing.
type Ask struct {
	// Reserved are tokens beside the view that count against the target.
	Reserved uint64
	// Goal is the size to come down to although the target does not demand it, in
	// tokens; 0 is none. Nothing is done where hardly anything would be freed.
	Goal uint64
	// Strategy is how to come down to the goal; empty is any way.
	Strategy Strategy
	// KeepLastTurns takes the place of Collapse.KeepLastTurns; 0 is the policy's.
	KeepLastTurns uint32
	// Rejected is the size of the context that was refused as too long, what was reserved
	// included, in tokens; 0 is none. The next takes at most four fifths of it, or 500 tokens, or
	// what cannot be reduced.
	Rejected uint64
}

// Strategy is a way to free tokens.
type Strategy string

// The strategies.
const (
	// Mask evicts tool results.
	Mask Strategy = "mask"
	// Drop drops the oldest groups.
	Drop Strategy = "window"
	// Summarize drops the groups that the newest summary covers.
	Summarize Strategy = "summarize"
)

// Resume returns the view in which the collapsed run of s is dropped and every other
// group is in full.
func (p *Pipeline) Resume(s State) View {
	v := p.digests.resume(s)
	v.ended, v.protection, v.recall = p.err, p.retention.protection(s), p.policy.Recall
	return v
}

// Current is what a state shows, whether over the target or not. The error is an
// *OverBudgetError where a strict policy refuses the target, or that of Until's context.
func (p *Pipeline) Current(b budget.Budget, s State, ask Ask) (Result, error) {
	_, now, err := p.start(b, s, ask)
	return now, err
}

// Run reduces the conversation under b.Target, starting from the state of the
// last run. The error is an *OverBudgetError, or that of Until's context.
func (p *Pipeline) Run(b budget.Budget, s State, ask Ask) (Result, error) {
	if ask.Reserved >= b.Target {
		return Result{}, &OverBudgetError{Target: b.Target, Needed: ask.Reserved, Parts: []IrreduciblePart{{What: "reminders", Tokens: ask.Reserved}}}
	}
	r, now, err := p.start(b, s, ask)
	if err != nil {
		return Result{}, err
	}
	start := now
	if r.policy.Whole {
		now.Start = &start
		return now, r.whole(now)
	}
	now = r.batch(now)
	switch share := r.budget.Share(p.policy.Collapse.Depth()); {
	case ask.Goal == 0 && r.cutPays(now, share):
		now = r.cut(now, share, "", "a cut pays")
	case r.budget.Target < r.limit:
		now = r.cut(now, ask.Goal, ask.Strategy, fmt.Sprintf("the context before was refused as too long at %d tokens", ask.Rejected))
	default:
		now = r.cut(now, ask.Goal, ask.Strategy, "the budget forced it")
	}
	now.State.AskedAsOf = p.conv.head
	if err := p.ended(); err != nil {
		return Result{}, err
	}
	if now.View.Tokens() > r.budget.Target {
		now = r.lastResort(now)
	}
	if err := p.ended(); err != nil {
		return Result{}, err
	}
	if now.View.Tokens() > r.limit {
		return Result{}, &OverBudgetError{Target: b.Target, Needed: now.View.Tokens() + ask.Reserved, Parts: irreducible(now.View, ask.Reserved)}
	}
	if s.CollapsedThrough > 0 && now.State.CollapsedThrough > s.CollapsedThrough {
		p.conv.texts.forget(now.State.CollapsedThrough) // where it begins, others may, too
	}
	p.conv.texts.bound(p.conv.bytes)
	p.conv.runs.keep(p, now.State)
	r.overCap(&now)
	if r.over(now) {
		now.note(fmt.Sprintf("nothing makes it smaller, though a context of %d tokens was refused as too long", ask.Rejected))
	}
	now.Start = &start
	return now, nil
}

// overCap says where results exceed their cap that nothing may evict.
func (r *run) overCap(now *Result) {
	limit, ok := r.budget.Caps[budget.TierToolResults]
	if !ok {
		return
	}
	used := now.View.TierTokens()[budget.TierToolResults]
	if held := r.retention.heldTokens(now.View); used > limit && held > 0 {
		now.note(fmt.Sprintf("results take %d tokens, %d more than their cap; %d of them may not be evicted", used, used-limit, held))
	}
}

// whole refuses a result over the target.
func (r *run) whole(now Result) error {
	const mostParts = 20 // the largest say enough
	if !r.over(now) {
		return nil
	}
	parts := r.InTheWay(now.View, r.ask.Reserved)
	return &OverBudgetError{
		Target: r.budget.Target + r.ask.Reserved, Needed: now.View.Tokens() + r.ask.Reserved,
		Parts: parts[:min(len(parts), mostParts)], Whole: true,
	}
}

// run is one run of a pipeline.
type run struct {
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

func (p *Pipeline) newRun(b budget.Budget, ask Ask) *run {
	r := &run{Pipeline: p, ask: ask, budget: b}
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

// start begins a run with what the state shows.
func (p *Pipeline) start(b budget.Budget, s State, ask Ask) (*run, Result, error) {
	r := p.newRun(b, ask)
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
func (r *run) keepTurns() uint32 {
	if r.ask.KeepLastTurns > 0 {
		return r.ask.KeepLastTurns
	}
	return r.policy.Collapse.KeepLastTurns
}

// demand is that for so many tokens.
func (r *run) demand(tokens uint64) Demand {
	return Demand{Tokens: tokens, Budget: r.budget, KeepTurns: r.keepTurns()}
}

// apply is what a state shows.
func (p *Pipeline) apply(s State) Result {
	if !p.incremental(s) {
		return p.reduce(s)
	}
	known := p.conv.runs.find(p, s)
	if known == nil {
		known = &lastRun{policy: p.policy, decided: p.digests.decided, state: s, result: p.reduce(s), groups: len(p.conv.groups)}
		known.state.AskedAsOf = 0
		known.result.View.items = slices.Clip(known.result.View.items) // others may be of the same groups
		if p.ended() != nil {
			return known.result // start and Run say so
		}
		p.conv.runs.tried = append(p.conv.runs.tried, known)
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
func (r *run) batch(now Result) Result {
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
func (r *run) aged(s State) Result {
	if r.evicted == nil {
		candidate := r.apply(r.evict(s))
		r.evicted = &candidate
	}
	return *r.evicted
}

// evict moves the rules by age up to the head.
func (r *run) evict(s State) State {
	s.EvictedAsOf, s.EvictedTurn = r.conv.head, r.conv.turns
	return r.unroot(s, s.CollapsedThrough)
}

// cut takes what the budget forces, and what a goal asks for that is to be reached by a
// strategy: it brings the view, or the tier that is over its cap, down to the fraction
// that a forced cut leaves, so that the next is many turns away. The prefix is written
// again in any case, so everything that is due goes with it. Where it is not the target
// that is exceeded and hardly anything can be done, nothing is: rewriting the prefix for
// that every turn would cost more.
func (r *run) cut(start Result, goal uint64, strategy Strategy, why string) Result {
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
func (r *run) excess(s stage, start, now View, goal uint64, strategy Strategy) uint64 {
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
func (r *run) free(f Freer, now Result, d Demand) Result {
	if d.Tokens == 0 {
		return now
	}
	return r.adopt(now, f.Free(now.View, now.State, d))
}

// adopt applies a state if its view is smaller.
func (r *run) adopt(now Result, s State) Result {
	if reflect.DeepEqual(s, now.State) {
		return now
	}
	if next := r.apply(s); next.View.Tokens() < now.View.Tokens() {
		return next
	}
	return now
}
