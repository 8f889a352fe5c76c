package reduce

import (
	"fmt"
	"slices"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
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
}

// NewPipeline returns the pipeline that reduces conv by policy. It shares conv's
// owner.
func NewPipeline(policy Policy, conv *Conversation) *Pipeline {
	p := &Pipeline{policy: policy, conv: conv}
	p.window = window{policy.Window, policy.Collapse, &digests{conv.groups, conv.gauge, policy.Collapse, &conv.digests}}
	p.retention = retention{policy.ToolResults, policy.Collapse.KeepLastTurns, conv.texts}
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

// OverBudgetError says that the view cannot be made small enough, and what is
// left that no reducer may touch.
type OverBudgetError struct {
	Target, Needed uint64
	Parts          []IrreduciblePart
}

// IrreduciblePart is a part of the context that no reducer may make smaller.
type IrreduciblePart struct {
	What   string
	Seq    eventlog.Seq
	Tokens uint64
}

func (e *OverBudgetError) Error() string {
	s := fmt.Sprintf("the context needs %d tokens and the target is %d; irreducible:", e.Needed, e.Target)
	for i, p := range e.Parts {
		if i > 0 {
			s += ","
		}
		s += fmt.Sprintf(" %s (event %d, %d tokens)", p.What, p.Seq, p.Tokens)
	}
	return s
}

// Resume returns the view in which the run that left earlier is gone and every
// other group stands in full.
func (p *Pipeline) Resume(s State) View {
	if s.CollapsedThrough == 0 {
		return NewView(p.conv.gauge, p.conv.groups)
	}
	return p.window.digests.resume(s.CollapsedThrough, s.CollapsedFor)
}

// Run reduces the conversation under b.Target, starting from the state of the
// last run. reserved are tokens that stand beside the view and count against the
// target. The error is an *OverBudgetError.
func (p *Pipeline) Run(b budget.Budget, s State, reserved uint64) (Result, error) {
	if reserved >= b.Target {
		return Result{}, &OverBudgetError{b.Target, reserved, []IrreduciblePart{{What: "reminders", Tokens: reserved}}}
	}
	target := b.Target
	b.Target -= reserved
	s, err := p.firstLimits(b, s, target)
	if err != nil {
		return Result{}, err
	}
	r := p.apply(b, s)
	r = p.batch(b, r)
	r = p.relieve(b, r)
	if r.View.Tokens() > b.Target {
		r = p.lastResort(b, r)
	}
	if r.View.Tokens() > b.Target {
		return Result{}, &OverBudgetError{target, r.View.Tokens() + reserved, irreducible(r.View, reserved)}
	}
	if r.State.CollapsedThrough > s.CollapsedThrough {
		p.conv.texts.forget(r.State.CollapsedThrough)
	}
	return r, nil
}

// resultShare is the largest part of the target that a single result may take
// when it first appears.
const resultShare = 0.125

// firstLimits fixes, when a session is first assembled, the size above which
// results are clipped, and clips a first user message that takes more than half
// of the target. The limit that it is clipped to holds until it exceeds two thirds
// of the target: reserves and reminders come and go, and must not rewrite what
// stands in front of everything.
func (p *Pipeline) firstLimits(b budget.Budget, s State, target uint64) (State, error) {
	if s.ClipTokens == 0 {
		s.ClipTokens = b.Share(resultShare)
		if limit := p.policy.Clipping.MaxTokens; limit > 0 {
			s.ClipTokens = min(s.ClipTokens, limit)
		}
	}
	if p.conv.firstUser < 0 {
		return s, nil
	}
	g := p.conv.groups[p.conv.firstUser]
	if g.Kind != KindUser || g.Pinned || g.Tokens <= target/2 || s.AnchorTokens > 0 && s.AnchorTokens <= target/3*2 {
		return s, nil
	}
	if p.policy.Window.StrictAnchor {
		return s, &OverBudgetError{target, g.Tokens, []IrreduciblePart{{"first user message", g.First, g.Tokens}}}
	}
	s.AnchorTokens = b.Target / 2
	return s, nil
}

// apply runs every reducer over the view that the state resumes.
func (p *Pipeline) apply(b budget.Budget, s State) Result {
	r := Result{View: p.Resume(s), State: s}
	for _, reducer := range p.reducers {
		var st Step
		r.View, r.State, st = step(reducer, r.View, b, r.State)
		r.Steps = append(r.Steps, st)
	}
	return r
}

// batch moves the rules by age up to the head if that is due.
func (p *Pipeline) batch(b budget.Budget, r Result) Result {
	if r.State.EvictedAsOf >= p.conv.head {
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
// due goes with it. Where only a cap is exceeded and hardly anything can be done
// about it, nothing is: rewriting the prefix for that every turn would cost more.
func (p *Pipeline) relieve(b budget.Budget, r Result) Result {
	asked := max(p.demand(p.retention, b, r.View, r.View), p.demand(p.window, b, r.View, r.View))
	if asked == 0 {
		return r
	}
	out := r
	if out.State.EvictedAsOf < p.conv.head {
		out = p.apply(b, p.evict(out.State))
	}
	for _, reducer := range []Reducer{p.retention, p.window} {
		out = p.ask(reducer, b, out, p.demand(reducer, b, r.View, out.View))
	}
	const leastProgress = 10 // a tenth of what was asked for
	if r.View.Tokens() <= b.Target && out.View.Tokens()+asked/leastProgress > r.View.Tokens() {
		return r
	}
	out.note("the budget forced it")
	return out
}

// demand is how many tokens a reducer should free of now: if the view at the start
// was over the target, or the reducer's own part over its cap, what is above the
// fraction of it that a forced cut leaves.
func (p *Pipeline) demand(reducer Reducer, b budget.Budget, start, now View) uint64 {
	var excess uint64
	over := func(before, used, limit uint64) {
		if goal := fraction(limit, p.policy.Collapse.To); before > limit && used > goal {
			excess = max(excess, used-goal)
		}
	}
	over(start.Tokens(), now.Tokens(), b.Target)
	tier := budget.TierToolResults
	if reducer.Name() == p.window.Name() {
		tier = budget.TierDialogue
		excess = max(excess, p.window.overWindow(now))
	}
	if limit, ok := b.Caps[tier]; ok {
		over(start.TierTokens()[tier], now.TierTokens()[tier], limit)
	}
	return excess
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

// lastResort gives up what a forced cut spares: all turns but the newest, then
// more of the newest results, then most of the digest.
func (p *Pipeline) lastResort(b budget.Budget, r Result) Result {
	r = p.ask(p.window, b, r, r.View.Tokens())
	if r.View.Tokens() > b.Target {
		r = p.ask(p.clipping, b, r, r.View.Tokens()-b.Target)
	}
	const least = 64 // tokens that a digest is written for at the least
	for size := p.window.sizeFor(b) / 4; r.View.Tokens() > b.Target && size >= least; size /= 4 {
		if r.State.CollapsedThrough > 0 && size >= r.State.CollapsedFor {
			continue
		}
		s := r.State
		b.Excess = r.View.Tokens()
		s.CollapsedThrough = max(s.CollapsedThrough, p.window.cut(r.View, b))
		b.Excess = 0
		s.CollapsedFor = size
		r = p.adopt(b, r, s)
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

// irreducible lists what is left in a view, and what stands beside it, that nothing
// may make smaller, the largest first.
func irreducible(v View, reserved uint64) []IrreduciblePart {
	var parts []IrreduciblePart
	if reserved > 0 {
		parts = append(parts, IrreduciblePart{What: "reminders", Tokens: reserved})
	}
	for i := range v.items {
		it := &v.items[i]
		what := "newest turn"
		switch {
		case it.group.Kind == KindSystem:
			what = "system prompt"
		case it.group.Anchor:
			what = "first user message"
		case it.group.Pinned:
			what = "pinned message"
		case it.group.Kind == KindUser:
			what = "user message"
		}
		parts = append(parts, IrreduciblePart{what, it.group.First, it.tokens})
	}
	if d, _ := v.Digest(); d.Tokens > 0 {
		parts = append(parts, IrreduciblePart{"record of earlier calls", 0, d.Tokens})
	}
	slices.SortStableFunc(parts, func(a, b IrreduciblePart) int {
		switch {
		case a.Tokens > b.Tokens:
			return -1
		case a.Tokens < b.Tokens:
			return 1
		}
		return 0
	})
	return parts
}
