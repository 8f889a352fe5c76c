// Package compaction carries out compactions, when a caller asks for one, and has summaries made ahead of need. It
// asks the runtime's hooks, has the summary made, records the result and notifies watchers. The engine decides what a
// compaction does; the scheduler makes summaries.
package compaction

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/decide"
	"github.com/contextd/contextd/internal/lifecycle"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/summarize"
	"github.com/contextd/contextd/internal/summarize/prompt"
)

// Options are what a Compactor needs. All except Observe and Forgotten are required.
type Options struct {
	Engine    *assemble.Engine
	Scheduler *summarize.Scheduler
	// News observes the scheduler, too.
	News *News
	// Journal must be the one that the engine and the scheduler use.
	Journal *lifecycle.Journal
	Hooks   *lifecycle.Hooks
	Store   eventlog.Store
	Clock   func() time.Time
	NewID   func() (string, error)
	Logger  *slog.Logger
	// Observe, if set, is called before each requested compaction; the function that it returns is called after it.
	Observe func(context.Context, Request) (context.Context, func(Outcome, error))
	// Forgotten, if set, is called when a session was deleted.
	Forgotten func(sessionID string)
}

// Compactor carries out compactions. Its methods may be called from any goroutine.
type Compactor struct {
	Options
	// ctx ends when the compactor closes.
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
}

// New returns a compactor that works until it is closed.
func New(o Options) *Compactor {
	c := &Compactor{Options: o}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Close cancels the background work (calls of hooks about summaries ahead of need, and waits for these summaries),
// and returns when it has ended.
func (c *Compactor) Close() {
	c.News.close()
	c.cancel()
	c.work.Wait()
}

// Forget drops the state of a deleted session and ends its background work.
func (c *Compactor) Forget(sessionID string, of eventlog.Incarnation) {
	c.News.forget(life{sessionID, of})
	c.Scheduler.Forget(sessionID, of)
	if c.Forgotten != nil {
		c.Forgotten(sessionID)
	}
}

// Request asks for a compaction now.
type Request struct {
	assemble.Compaction
	// Mode says who asks; see the modes of package lifecycle.
	Mode string
	// Trigger is, by default, the mode's (defaultTrigger).
	Trigger eventlog.CompactionTrigger
	// Instructions are the caller's for a summarizer, in addition to the policy's.
	Instructions prompt.Instructions
}

// The outcomes of a compaction that did not fail.
const (
	Compacted   = "compacted"
	NothingToDo = "nothing_to_do"
	Vetoed      = "vetoed"
)

// Outcome is the result of a compaction request.
type Outcome struct {
	// Outcome is Compacted, NothingToDo or Vetoed.
	Outcome string
	// Detail says why, as a text; empty if there is nothing to say.
	Detail   string
	Strategy reduce.Strategy
	Before   decide.Size
	// Target is the size, in tokens, that the compaction should reach; 0 is as small as possible. Short says by how
	// much the context exceeds it.
	Target uint64
	Short  decide.Shortfall
	// Done is nil unless the session was compacted.
	Done *assemble.Compacted
	// Event is the seq of the Compaction event; 0 if none was appended.
	Event eventlog.Seq
}

// Compact compacts a session now. What it did is durable on return.
func (c *Compactor) Compact(ctx context.Context, r Request) (out Outcome, err error) {
	r.Trigger = cmp.Or(r.Trigger, defaultTrigger(r.Mode))
	if c.Observe != nil {
		var done func(Outcome, error)
		ctx, done = c.Observe(ctx, r)
		defer func() { done(out, err) }()
	}
	return c.compact(ctx, r)
}

func (c *Compactor) compact(ctx context.Context, r Request) (Outcome, error) {
	if err := r.check(); err != nil {
		return Outcome{}, err
	}
	session, err := c.Store.Session(ctx, r.SessionID)
	if err != nil {
		return Outcome{}, err
	}
	r.Of = session.Incarnation
	plan, err := c.Engine.PlanCompaction(ctx, r.Compaction)
	if err != nil {
		return Outcome{}, err
	}
	out := Outcome{Outcome: NothingToDo, Detail: plan.Nothing, Strategy: plan.Strategy, Before: plan.Before, Target: plan.TargetTokens, Short: plan.Short}
	if plan.Nothing != "" {
		return out, nil
	}
	verdict, err := c.Hooks.PreCompact(ctx, r.call(plan))
	if err != nil {
		return Outcome{}, err
	}
	if verdict.Decision == lifecycle.Block {
		if err := c.report(ctx, r.SessionID, r.Of, vetoed(r.Mode, r.Trigger, verdict.Reason)); err != nil {
			return Outcome{}, err
		}
		out.Outcome, out.Detail = Vetoed, verdict.Reason
		return out, nil
	}
	if verdict.Decision == lifecycle.Modify {
		r.modify(verdict.Terms, plan)
		if plan, err = c.Engine.PlanCompaction(ctx, r.Compaction); err != nil {
			return Outcome{}, err
		}
		out.Strategy, out.Detail, out.Target, out.Short = plan.Strategy, cmp.Or(plan.Nothing, verdict.Reason), plan.TargetTokens, plan.Short
		if plan.Nothing != "" {
			return out, nil
		}
	}
	return c.carryOut(ctx, r, plan, out)
}

// check refuses options that contradict each other, such as instructions without a model that could follow them.
func (r Request) check() error {
	given := r.Instructions.Text != ""
	switch {
	case r.Summary != "" && r.Strategy != "" && r.Strategy != reduce.Summarize:
		return &eventlog.InvalidError{Field: "summary", Reason: fmt.Sprintf("has no place in a compaction by %s", r.Strategy)}
	case given && r.Summary != "":
		return &eventlog.InvalidError{Field: "instructions", Reason: "cannot be used with a summary from the caller: no model is asked"}
	case given && r.Strategy != "" && r.Strategy != reduce.Summarize:
		return &eventlog.InvalidError{Field: "instructions", Reason: fmt.Sprintf("have no place in a compaction by %s: no model is asked", r.Strategy)}
	default:
		return nil
	}
}

// modify applies the terms that hooks changed. If the caller named no strategy, the strategy stays open
// unless the hooks chose a different one. If that is not to summarize, the caller's text is dropped.
func (r *Request) modify(t lifecycle.Terms, plan decide.Plan) {
	r.KeepLastTurns, r.TargetTokens = t.KeepLastTurns, t.TargetTokens
	if r.Strategy == "" && t.Strategy == string(plan.Strategy) {
		return
	}
	if r.Strategy = reduce.Strategy(t.Strategy); r.Strategy != reduce.Summarize {
		r.Summary = ""
	}
}

// carryOut does the planned compaction after the hooks have agreed.
func (c *Compactor) carryOut(ctx context.Context, r Request, plan decide.Plan, out Outcome) (Outcome, error) {
	if err := c.report(ctx, r.SessionID, r.Of, lifecycle.Happened(lifecycle.CompactionStarted,
		lifecycle.AttributeMode, r.Mode, lifecycle.AttributeTrigger, lifecycle.TriggerName(r.Trigger),
		lifecycle.AttributeStrategy, string(plan.Strategy), lifecycle.AttributeTokensBefore, lifecycle.Decimal(plan.Before.Tokens))); err != nil {
		return Outcome{}, err
	}
	open := r.Strategy == ""
	r.Strategy, r.KeepLastTurns, r.TargetTokens = plan.Strategy, plan.KeepLastTurns, plan.TargetTokens
	summary, err := c.summary(ctx, r, plan)
	if err != nil {
		if !open || ctx.Err() != nil {
			return Outcome{}, err
		}
		// The caller named no strategy, and the cheapest one failed. Dropping needs no summary.
		out.Detail = fmt.Sprintf("no summary could be made (%v), so the groups were dropped without one", err)
		r.Strategy, out.Strategy = reduce.Drop, reduce.Drop
	}
	done, nothing, err := c.Engine.Compact(ctx, r.Compaction, summary, func(ctx context.Context, done *assemble.Compacted) (seq eventlog.Seq, err error) {
		out.Event, err = c.mark(ctx, r, done)
		return out.Event, err
	})
	if err != nil {
		return Outcome{}, err
	}
	if done == nil {
		out.Detail = nothing
		return out, nil
	}
	if done.Unrecorded != nil {
		c.Logger.Warn("projection of a compaction not recorded", "session_id", r.SessionID, "error", done.Unrecorded)
	}
	out.Outcome, out.Done, out.Before, out.Short = Compacted, done, done.Before, done.Short
	if r.Instructions.Text != "" && summary == nil {
		out.Detail = cmp.Or(out.Detail, "no model was asked, so the instructions were not used")
	}
	call := r.call(plan)
	call.Terms.Strategy = string(r.Strategy)
	c.reportToHooks(call, done.Collapsed)
	return out, nil
}

// summary has the planned summary made, or stores the caller's own.
func (c *Compactor) summary(ctx context.Context, r Request, plan decide.Plan) (*summarize.Summary, error) {
	if plan.Summary == nil {
		return nil, nil
	}
	var s summarize.Summary
	var err error
	if r.Summary != "" {
		s, err = c.Engine.PutSummary(ctx, *plan.Summary, r.Summary)
	} else {
		s, err = c.Scheduler.Do(ctx, *plan.Summary)
	}
	if err != nil {
		return nil, err
	}
	return &s, nil
}

// report records a lifecycle event that is stored on its own.
func (c *Compactor) report(ctx context.Context, sessionID string, of eventlog.Incarnation, e lifecycle.Event) error {
	return c.Journal.Put(ctx, lifecycle.Entry{SessionID: sessionID, Of: of, Events: []lifecycle.Event{e}})
}

func vetoed(mode string, trigger eventlog.CompactionTrigger, reason string) lifecycle.Event {
	return lifecycle.Happened(lifecycle.CompactionVetoed, lifecycle.AttributeMode, mode,
		lifecycle.AttributeTrigger, lifecycle.TriggerName(trigger), lifecycle.AttributeReason, reason)
}

// reportToHooks completes the call to the runtime's hooks after a compaction.
func (c *Compactor) reportToHooks(call lifecycle.Call, done decide.Collapsed) {
	text := ""
	if done.Summary != nil {
		text = done.Summary.Text
	}
	call.Policy, call.MessageCount, call.TokensBefore = done.Policy, uint32(done.Before.Messages), done.Before.Tokens
	call.Result = &lifecycle.Result{
		RemainingMessages: uint32(done.After.Messages), TokensAfter: done.After.Tokens,
		ArchivedMessages: uint32(max(done.Archived, 0)), Summary: text,
		Reminders: done.Reminders,
	}
	c.Hooks.PostCompact(call)
}

// instructed says whose instructions a summarizer follows: the caller's, or else the policy's.
func instructed(own, policy prompt.Instructions) lifecycle.Instructions {
	switch {
	case own.Text != "":
		return lifecycle.Instructions{Source: lifecycle.FromRequest, Mode: string(cmp.Or(own.Mode, prompt.Extend))}
	case policy.Text != "":
		return lifecycle.Instructions{Source: lifecycle.FromPolicy, Mode: string(cmp.Or(policy.Mode, prompt.Extend))}
	default:
		return lifecycle.Instructions{}
	}
}

func (r Request) call(plan decide.Plan) lifecycle.Call {
	return lifecycle.Call{
		SessionID: r.SessionID, Mode: r.Mode, Trigger: r.Trigger, Policy: plan.Policy,
		Instructions: instructed(r.Instructions, r.Request.Policy.Summaries.Instructions),
		Terms:        lifecycle.Terms{Strategy: string(plan.Strategy), KeepLastTurns: plan.KeepLastTurns, TargetTokens: plan.TargetTokens},
		MessageCount: uint32(plan.Before.Messages), TokensBefore: plan.Before.Tokens,
	}
}

// defaultTrigger returns the trigger of a compaction whose caller does not name one.
func defaultTrigger(mode string) eventlog.CompactionTrigger {
	switch mode {
	case lifecycle.ModeAuto, lifecycle.ModeWorkflow, lifecycle.ModeWorker:
		return eventlog.TriggerThreshold
	default:
		return eventlog.TriggerManual
	}
}
