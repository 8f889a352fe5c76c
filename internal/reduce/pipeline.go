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
	window   window
	clipping clipping
}

// NewPipeline returns the pipeline that reduces conv by policy. It shares conv's
// owner.
func NewPipeline(policy Policy, conv *Conversation) *Pipeline {
	p := &Pipeline{policy: policy, conv: conv}
	p.window = window{policy.Window, policy.Collapse, &digests{conv.groups, conv.gauge, policy.Collapse, &conv.digest}}
	p.clipping = clipping{policy.Clipping, conv.texts}
	p.reducers = []Reducer{
		duplicates{policy.Duplicates, conv.texts},
		retention{policy.ToolResults, policy.Collapse.KeepLastTurns, conv.texts},
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
	v := NewView(p.conv.gauge, p.conv.groups)
	if s.CollapsedThrough == 0 {
		return v
	}
	e := v.Editor()
	p.window.digests.collapse(e, s.CollapsedThrough, s.CollapsedFor)
	return e.View()
}

// Run reduces the conversation under b.Target, starting from the state of the
// last run. reserved are tokens that stand beside the view and count against the
// target. The error is an *OverBudgetError.
func (p *Pipeline) Run(b budget.Budget, s State, reserved uint64) (Result, error) {
	if reserved >= b.Target {
		return Result{}, &OverBudgetError{b.Target, reserved, []IrreduciblePart{{What: "reminders", Tokens: reserved}}}
	}
	b.Target -= reserved
	s, err := p.firstLimits(b, s)
	if err != nil {
		return Result{}, err
	}
	r := p.apply(b, s)
	r = p.batch(b, r)
	if excess := overCaps(b, r.View); excess > 0 || r.View.Tokens() > b.Target || p.window.overWindow(r.View) > 0 {
		r = p.relieve(b, r, excess)
	}
	if r.View.Tokens() > b.Target {
		r = p.lastResort(b, r)
	}
	if r.View.Tokens() > b.Target {
		return Result{}, &OverBudgetError{b.Target + reserved, r.View.Tokens() + reserved, irreducible(r.View)}
	}
	return r, nil
}

// resultShare is the largest part of the target that a single result may take
// when it first appears.
const resultShare = 0.25

// firstLimits fixes, when a session is first assembled, the size above which
// results are clipped, and clips a first user message that takes more than half
// of the target.
func (p *Pipeline) firstLimits(b budget.Budget, s State) (State, error) {
	if s.ClipTokens == 0 {
		s.ClipTokens = b.Share(resultShare)
		if limit := p.policy.Clipping.MaxTokens; limit > 0 {
			s.ClipTokens = min(s.ClipTokens, limit)
		}
	}
	half := b.Target / 2
	for _, g := range p.conv.groups {
		if !g.Anchor {
			break
		}
		if g.Kind != KindUser || g.Pinned || g.Tokens <= half || s.AnchorTokens > 0 && s.AnchorTokens <= half {
			continue
		}
		if p.policy.Window.StrictAnchor {
			return s, &OverBudgetError{b.Target, g.Tokens, []IrreduciblePart{{"first user message", g.First, g.Tokens}}}
		}
		s.AnchorTokens = half
	}
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
	next := p.evictNow(r.State)
	if next == r.State.EvictedAsOf {
		return r
	}
	s := r.State
	s.EvictedAsOf, s.EvictedTurn = next, p.conv.turns
	candidate := p.apply(b, s)
	due, why := p.policy.Cache.due(r.View, candidate.View, r.State, p.conv.turns, p.conv.lastAt.idle(p.policy.Cache.TTL))
	if !due {
		return r
	}
	candidate.note("batch: " + why)
	return candidate
}

// evictNow is the event that a batch would evaluate the rules at.
func (p *Pipeline) evictNow(s State) eventlog.Seq { return max(s.EvictedAsOf, p.conv.head) }

// relieve brings the view down to the fraction of the target that a forced cut
// leaves. The prefix is written anew in any case, so everything that is due goes
// with it.
func (p *Pipeline) relieve(b budget.Budget, r Result, excess uint64) Result {
	s := r.State
	s.EvictedAsOf, s.EvictedTurn = p.evictNow(s), p.conv.turns
	r = p.apply(b, s)
	goal := min(b.Share(p.policy.Collapse.To), r.View.Tokens()-min(excess, r.View.Tokens()))
	for i, reducer := range p.reducers {
		if r.View.Tokens() <= goal {
			break
		}
		if reducer.Name() == p.clipping.Name() {
			continue // tighter limits are the last resort
		}
		b.Excess = r.View.Tokens() - goal
		_, next, _ := reducer.Reduce(r.View, b, r.State)
		b.Excess = 0
		if !next.equal(r.State) {
			r = p.apply(b, next)
			r.Steps[i].Note += "; the budget forced it"
		}
	}
	return r
}

// lastResort clips what is left of the newest results.
func (p *Pipeline) lastResort(b budget.Budget, r Result) Result {
	b.Excess = r.View.Tokens() - b.Target
	_, s, _ := p.clipping.Reduce(r.View, b, r.State)
	b.Excess = 0
	return p.apply(b, s)
}

// overCaps is by how much tiers exceed their own caps.
func overCaps(b budget.Budget, v View) uint64 {
	if len(b.Caps) == 0 {
		return 0
	}
	var excess uint64
	tiers := v.TierTokens()
	for _, tier := range []budget.Tier{budget.TierToolResults, budget.TierDialogue} {
		if limit, ok := b.Caps[tier]; ok && tiers[tier] > limit {
			excess += tiers[tier] - limit
		}
	}
	return excess
}

func (r *Result) note(s string) {
	if len(r.Steps) > 0 {
		r.Steps[0].Note = s + "; " + r.Steps[0].Note
	}
}

// irreducible lists what is left in a view that nothing may make smaller, the
// largest first.
func irreducible(v View) []IrreduciblePart {
	var parts []IrreduciblePart
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
