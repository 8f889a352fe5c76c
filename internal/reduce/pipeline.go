package reduce

import (
	"context"
	"fmt"
	"slices"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Pipeline runs the reducers of a policy from cheap to expensive.
type Pipeline struct {
	policy  Policy
	model   string // the model that is asked; "" if it is not known
	conv    *Conversation
	digests *digestWriter
	// The reducers that are asked for tokens. The method stages lists all reducers.
	retention retention
	clipping  clipping
	window    window
	// named returns the results of a view that roots name; nil if there are no roots.
	named func(View) map[eventlog.Place]bool
	// err returns why a reduction should stop; nil if nothing stops it.
	err func() error
}

// NewPipeline returns a pipeline that reduces conv by policy and may quote any of the summaries, which are oldest
// first. It uses conv's caches, so it must not be used at the same time as conv.
func NewPipeline(policy Policy, conv *Conversation, summaries ...Summary) *Pipeline {
	// With Whole only callers' compactions reduce the log, so the rules by age must evict nothing.
	policy.ToolResults.Strict = policy.ToolResults.Strict && !policy.Whole
	p := &Pipeline{policy: policy, conv: conv}
	conv.cached.tried = nil
	p.digests = &digestWriter{
		conv: conv, groups: conv.lend(), reminders: conv.reminders, gauge: conv.gauge, policy: policy.Collapse, recall: policy.Recall,
		memos: &conv.digestMemos, summaries: summaries, decided: conv.Decided(), ended: p.ended,
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

// Asks names the model that gets the reduced views.
func (p *Pipeline) Asks(model string) *Pipeline {
	p.model = model
	return p
}

// Until makes reductions stop with ctx's error, at the next group or reducer, when ctx ends. A stopped reduction
// leaves valid caches.
func (p *Pipeline) Until(ctx context.Context) *Pipeline {
	p.err = ctx.Err
	return p
}

// ended returns why a reduction should stop; nil if it should go on.
func (p *Pipeline) ended() error {
	if p.conv.missing {
		return ErrIncomplete
	}
	if p.err == nil {
		return nil
	}
	return p.err()
}

// Result is a reduced view, the state that gives it, and what each reducer did.
type Result struct {
	View  View
	State State
	Steps []Step
	// Start is the result of the state from which Run started. Only Run sets it.
	Start *Result
}

func (r *Result) note(s string) {
	if len(r.Steps) > 0 {
		r.Steps = slices.Clone(r.Steps)
		r.Steps[0].Note = s + "; " + r.Steps[0].Note
	}
}

// Ask says what a reduction must do besides coming under the target. The zero value asks for nothing.
type Ask struct {
	// Reserved is how many tokens of the target are for what is not in the view, such as reminders.
	Reserved uint64
	// Goal is the size, in tokens, down to which Decide and SpanFor reduce the view although the target allows more; 0
	// is none. Run ignores it.
	Goal uint64
	// Strategy is the way in which Decide reduces the view.
	Strategy Strategy
	// KeepLastTurns, if not 0, overrides the policy's Collapse.KeepLastTurns.
	KeepLastTurns uint32
	// Rejected is the size, in tokens and including Reserved, of a context that the provider refused as too long; 0
	// is none. The result is at most four fifths of it, but may always be 500 tokens, or as large as what cannot be
	// reduced.
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

// Resume returns the view in which the run of s is collapsed and every other group is in full.
func (p *Pipeline) Resume(s State) View {
	v := p.digests.resume(s)
	v.ended, v.protection, v.asked = p.err, p.retention.protection(s), p.asked()
	return v
}

// Current returns the result of a state, even if it is over the target. The error is an *OverBudgetError if a strict
// policy refuses the target, ErrIncomplete, or the error of Until's context.
func (p *Pipeline) Current(b budget.Budget, s State, ask Ask) (Result, error) {
	_, now, err := p.start(b, s, ask)
	return now, err
}

// Run reduces the conversation to at most b.Target, starting from the state of the last reduction. The error is an
// *OverBudgetError, ErrIncomplete, or the error of Until's context.
func (p *Pipeline) Run(b budget.Budget, s State, ask Ask) (Result, error) {
	if err := p.checkReminders(b.Target, ask.Reserved); err != nil {
		return Result{}, err
	}
	r, now, err := p.start(b, s, ask)
	if err != nil {
		return Result{}, err
	}
	start := now
	if r.policy.Whole {
		now.Start = &start
		return now, r.refuseOver(now)
	}
	now = r.cutAsNeeded(r.batch(now))
	now.State.AskedAsOf = p.conv.head
	if err := p.ended(); err != nil {
		return Result{}, err
	}
	if r.over(now) {
		now = r.lastResort(now)
	}
	if err := p.ended(); err != nil {
		return Result{}, err
	}
	if now.View.Tokens() > r.limit {
		return Result{}, &OverBudgetError{Target: b.Target, Needed: now.View.Tokens() + ask.Reserved, Parts: irreducible(now.View, ask.Reserved)}
	}
	r.keepForNext(s, now)
	r.noteOverCap(&now)
	if r.over(now) {
		now.note(fmt.Sprintf("nothing makes it smaller, though a context of %d tokens was refused as too long", ask.Rejected))
	}
	now.Start = &start
	return now, nil
}
