package reduce

import (
	"context"
	"slices"

	"github.com/contextd/contextd/internal/budget"
)

// Pipeline runs the reducers of a policy from cheap to expensive.
type Pipeline struct {
	policy   Policy
	conv     *Conversation
	reducers []Reducer
	// The reducers that can be asked for more.
	retention retention
	clipping  clipping
	window    window
	// err says why the run should end; nil if nothing ends it.
	err func() error
}

// Until has runs end with the error of ctx, at the next group or reducer. What a run kept
// for the next one by then is whole.
func (p *Pipeline) Until(ctx context.Context) *Pipeline {
	p.err = ctx.Err
	return p
}

// ended returns why the run should end, if it should.
func (p *Pipeline) ended() error {
	if p.err == nil {
		return nil
	}
	return p.err()
}

// NewPipeline returns the pipeline that reduces conv by policy and may quote any of
// the summaries, oldest first. It shares conv's owner.
func NewPipeline(policy Policy, conv *Conversation, summaries ...Summary) *Pipeline {
	p := &Pipeline{policy: policy, conv: conv}
	p.window = window{policy: policy.Window, run: policy.Collapse, digests: &digests{
		groups: conv.groups, reminders: conv.reminders, gauge: conv.gauge, policy: policy.Collapse,
		memos: &conv.digests, summaries: summaries, decided: conv.Decided(), ended: p.ended,
	}}
	p.retention = retention{policy: policy.ToolResults, rules: conv.rulesOf(policy.ToolResults), ended: p.ended, keepTurns: policy.Collapse.KeepLastTurns, texts: conv.texts, digests: p.window.digests}
	p.clipping = clipping{policy.Clipping, conv.texts}
	p.reducers = []Reducer{
		duplicates{policy.Duplicates, conv.texts},
		p.retention,
		p.clipping,
		thinking{policy.Thinking},
		p.window,
	}
	return p
}

// Result is a reduced view and how it came about.
type Result struct {
	View  View
	State State
	Steps []Step
}

// Resume returns the view in which the run that left earlier is gone and every
// other group stands in full.
func (p *Pipeline) Resume(s State) View {
	v := NewView(p.conv.gauge, p.conv.groups)
	if s.CollapsedThrough > 0 {
		v = p.window.digests.resume(s)
	}
	v.ended = p.err
	return v
}

// Ask is what a run is to do beside coming under the target. The zero value asks
// for nothing.
type Ask struct {
	// Reserved are tokens that stand beside the view and count against the target.
	Reserved uint64
	// Goal is the size to come down to although the target does not demand it, in
	// tokens; 0 is none. Nothing is done where hardly anything would be freed.
	Goal uint64
	// Strategy is how to come down to the goal; empty is any way.
	Strategy Strategy
	// KeepLastTurns takes the place of Collapse.KeepLastTurns; 0 leaves that.
	KeepLastTurns uint32
}

// Strategy is a way to free tokens.
type Strategy string

// The strategies.
const (
	// Mask evicts tool results.
	Mask Strategy = "mask"
	// Drop lets the oldest groups leave.
	Drop Strategy = "window"
	// Summarize lets the groups leave that the newest summary covers.
	Summarize Strategy = "summarize"
)

// Run reduces the conversation under b.Target, starting from the state of the
// last run. The error is an *OverBudgetError, or that of Until's context.
func (p *Pipeline) Run(b budget.Budget, s State, ask Ask) (Result, error) {
	if ask.Reserved >= b.Target {
		return Result{}, &OverBudgetError{b.Target, ask.Reserved, []IrreduciblePart{{What: "reminders", Tokens: ask.Reserved}}}
	}
	target := b.Target
	b.Target -= ask.Reserved
	s, err := p.firstLimits(b, s, target)
	if err != nil {
		return Result{}, err
	}
	p.heed(ask)
	r := p.apply(b, s)
	r = p.batch(b, r)
	if goal := b.Share(p.policy.Collapse.To); ask.Goal == 0 && p.pays(b, r, goal) {
		ask.Goal, ask.Strategy = goal, ""
		r = p.relieve(b, r, ask, "a cut pays")
	} else {
		r = p.relieve(b, r, ask, "the budget forced it")
	}
	r.State.AskedAsOf = p.conv.head
	p.window.atSummary = false
	if err := p.ended(); err != nil {
		return Result{}, err
	}
	if r.View.Tokens() > b.Target {
		r = p.lastResort(b, r)
	}
	if err := p.ended(); err != nil {
		return Result{}, err
	}
	if r.View.Tokens() > b.Target {
		return Result{}, &OverBudgetError{target, r.View.Tokens() + ask.Reserved, irreducible(r.View, ask.Reserved)}
	}
	if r.State.CollapsedThrough > s.CollapsedThrough {
		p.conv.texts.forget(r.State.CollapsedThrough)
	}
	return r, nil
}

// heed sets the pipeline up for what is asked.
func (p *Pipeline) heed(ask Ask) {
	p.window.atSummary = ask.Strategy == Summarize
	if ask.KeepLastTurns > 0 {
		p.window.run.KeepLastTurns, p.retention.keepTurns = ask.KeepLastTurns, ask.KeepLastTurns
	}
}

// apply runs every reducer over the view that the state resumes.
func (p *Pipeline) apply(b budget.Budget, s State) Result {
	r := Result{View: p.Resume(s), State: s}
	for _, reducer := range p.reducers {
		if p.ended() != nil {
			return r // Run says so
		}
		var st Step
		r.View, r.State, st = step(reducer, r.View, b, r.State)
		r.Steps = append(r.Steps, st)
	}
	return r
}

// batch moves the rules by age up to the head if that is due.
func (p *Pipeline) batch(b budget.Budget, r Result) Result {
	if r.State.EvictedAsOf >= p.conv.head || p.ended() != nil {
		return r
	}
	candidate := p.apply(b, p.evict(r.State))
	due, why := p.policy.Cache.due(r.View, candidate.View, r.State, p.conv.turns, p.conv.lastAt.idle(p.policy.Cache.TTL))
	if !due {
		return r
	}
	candidate.note("batch: " + why)
	return candidate
}

// evict moves the rules by age up to the head.
func (p *Pipeline) evict(s State) State {
	s.EvictedAsOf, s.EvictedTurn = p.conv.head, p.conv.turns
	return s
}

// relieve takes what the budget forces: it brings the view, or the tier that is
// over its cap, down to the fraction that a forced cut leaves, so that the next is
// many turns away. The prefix is written anew in any case, so everything that is
// due goes with it. Where it is not the target that is exceeded and hardly anything
// can be done, nothing is: rewriting the prefix for that every turn would cost more.
func (p *Pipeline) relieve(b budget.Budget, r Result, ask Ask, why string) Result {
	steps := []relief{{p.retention, budget.TierToolResults, Mask}, {p.window, budget.TierDialogue, Drop}}
	var asked uint64
	for _, step := range steps {
		asked = max(asked, p.demand(step, b, r.View, r.View, ask))
	}
	if asked == 0 {
		return r
	}
	out := r
	if out.State.EvictedAsOf < p.conv.head {
		out = p.apply(b, p.evict(out.State))
	}
	for _, step := range steps {
		out = p.ask(step.reducer, b, out, p.demand(step, b, r.View, out.View, ask))
	}
	const leastProgress = 10 // a tenth of what was asked for
	if r.View.Tokens() <= b.Target && out.View.Tokens()+asked/leastProgress > r.View.Tokens() {
		return r
	}
	out.note(why)
	return out
}

// relief is a reducer that can be asked for more, the tier that it makes smaller and
// the strategy that it serves.
type relief struct {
	reducer  Reducer
	tier     budget.Tier
	strategy Strategy
}

// demand is how many tokens a reducer should free of now: if the view at the start
// was over the target, or the reducer's own part over its cap, what is above the
// fraction of it that a forced cut leaves; and what is above the goal that was asked
// for.
func (p *Pipeline) demand(of relief, b budget.Budget, start, now View, ask Ask) uint64 {
	var excess uint64
	over := func(before, used, limit, goal uint64) {
		if before > limit && used > goal {
			excess = max(excess, used-goal)
		}
	}
	down := func(limit uint64) uint64 { return fraction(limit, p.policy.Collapse.To) }
	over(start.Tokens(), now.Tokens(), b.Target, down(b.Target))
	if of.tier == budget.TierDialogue {
		excess = max(excess, p.window.overWindow(now))
		// Stubs fill the cap of results, too, and only leave with their groups.
		if limit, ok := b.Caps[budget.TierToolResults]; ok {
			results := now.TierTokens()[budget.TierToolResults]
			over(results, results, limit, down(limit))
		}
	}
	if limit, ok := b.Caps[of.tier]; ok {
		over(start.TierTokens()[of.tier], now.TierTokens()[of.tier], limit, down(limit))
	}
	if ask.Goal > 0 && of.serves(ask.Strategy) {
		over(start.Tokens(), now.Tokens(), ask.Goal, ask.Goal)
	}
	return excess
}

// serves reports whether the reducer is one that a strategy calls for.
func (of relief) serves(s Strategy) bool {
	return s == "" || s == of.strategy || s == Summarize && of.strategy == Drop
}

// ask has a reducer free excess tokens and applies what it decided, unless that
// would free nothing.
func (p *Pipeline) ask(reducer Reducer, b budget.Budget, r Result, excess uint64) Result {
	if excess == 0 {
		return r
	}
	b.Excess = excess
	_, s, _ := reducer.Reduce(r.View, b, r.State)
	b.Excess = 0
	return p.adopt(b, r, s)
}

// adopt applies a state if its view is smaller.
func (p *Pipeline) adopt(b budget.Budget, r Result, s State) Result {
	if s.equal(r.State) {
		return r
	}
	if next := p.apply(b, s); next.View.Tokens() < r.View.Tokens() {
		return next
	}
	return r
}

// lastResort gives up what a forced cut spares, in the order that docs/policies.md
// gives: what humans said first and last goes after everything else.
func (p *Pipeline) lastResort(b budget.Budget, r Result) Result {
	r = p.ask(p.window, b, r, r.View.Tokens())
	if r.View.Tokens() > b.Target {
		r = p.ask(p.clipping, b, r, r.View.Tokens()-b.Target)
	}
	const leastDigest = 64 // tokens that a digest is written for at the least
	for size := p.window.sizeFor(b, 0) / 4; r.View.Tokens() > b.Target && size >= leastDigest; size /= 4 {
		if r.State.CollapsedThrough > 0 && size >= r.State.CollapsedFor {
			continue
		}
		s := r.State
		b.Excess = r.View.Tokens()
		s.CollapsedThrough = max(s.CollapsedThrough, p.window.cut(r.View, b, 0))
		b.Excess = 0
		s.CollapsedFor = size
		r = p.adopt(b, r, s)
	}
	r = p.clipSummary(b, r)
	r = p.clipTexts(b, r, func(g *Group) bool { return g.Standing != "" })
	r = p.clipHuman(b, r, p.humanLimit(b, r))
	if r.View.Tokens() > b.Target {
		r = p.clipSystem(b, r)
	}
	r = p.clipTexts(b, r, func(g *Group) bool { return g.Human == 0 })
	for _, through := range p.window.newestLeave(r.View) {
		if r.View.Tokens() <= b.Target {
			break
		}
		// What is left are the arguments of the newest calls, which nothing may change:
		// the ledger shows their beginnings.
		s := r.State
		s.CollapsedThrough, s.CollapsedFor = max(s.CollapsedThrough, through), max(b.Target/4, leastDigest)
		r = p.adopt(b, r, s)
	}
	if n := len(p.conv.groups); r.View.Tokens() > b.Target && n > 0 {
		s := r.State
		s.CollapsedThrough, s.CollapsedFor = max(s.CollapsedThrough, p.conv.groups[n-1].First), 0
		r = p.adopt(b, r, s)
	}
	for limit := p.humanLimit(b, r) / 2; r.View.Tokens() > b.Target && limit >= clipFloor; limit /= 2 {
		r = p.clipHuman(b, r, limit)
	}
	r.note("the last resort: only the newest turn was spared")
	return r
}

func (r *Result) note(s string) {
	if len(r.Steps) > 0 {
		r.Steps = slices.Clone(r.Steps)
		r.Steps[0].Note = s + "; " + r.Steps[0].Note
	}
}
