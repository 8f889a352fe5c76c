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
	conv    *Conversation
	digests *digestWriter
	// The reducers that are asked for tokens; stages lists all.
	retention retention
	clipping  clipping
	window    window
	// named says which results roots name; nil if there are no roots.
	named func(View) map[eventlog.Place]bool
	// err says why a reduction should end; nil if nothing ends it.
	err func() error
}

// NewPipeline returns the pipeline that reduces conv by policy and may quote any of
// the summaries, oldest first. It shares conv's owner.
func NewPipeline(policy Policy, conv *Conversation, summaries ...Summary) *Pipeline {
	// A whole policy is reduced by callers' compactions alone, so its rules by age must evict nothing.
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

// Until makes reductions stop with the error of ctx, at the next group or reducer. The caches that a
// stopped reduction filled stay valid.
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

// Result is a reduced view and how it came about.
type Result struct {
	View  View
	State State
	Steps []Step
	// Start is what the state that Run started from showed. Only Run sets it.
	Start *Result
}

func (r *Result) note(s string) {
	if len(r.Steps) > 0 {
		r.Steps = slices.Clone(r.Steps)
		r.Steps[0].Note = s + "; " + r.Steps[0].Note
	}
}

// Ask is what a reduction is to do besides coming under the target. The zero value asks for nothing.
type Ask struct {
	// Reserved is how many tokens of the target are taken by what is not in the view, such as reminders.
	Reserved uint64
	// Goal is a size, in tokens, that the view is to come down to even where the target allows more; 0 is
	// none. Where that would free hardly anything, nothing is done.
	Goal uint64
	// Strategy is how to come down to the goal; empty is any way.
	Strategy Strategy
	// KeepLastTurns overrides the policy's Collapse.KeepLastTurns; 0 does not.
	KeepLastTurns uint32
	// Rejected is the size, in tokens and with Reserved, of a context that the provider refused as too
	// long; 0 is none. The next one takes at most four fifths of it, but may always take 500 tokens and
	// what cannot be reduced.
	Rejected uint64
	// Unbind are events whose bound reasoning is not shown from now on, because something before it changed
	// since a model wrote it.
	Unbind eventlog.Ranges
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
// last reduction. The error is an *OverBudgetError, or that of Until's context.
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
