package compaction

import (
	"context"
	"errors"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/decide"
	"github.com/contextd/contextd/internal/guard"
	"github.com/contextd/contextd/internal/lifecycle"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/summarize"
	"github.com/contextd/contextd/internal/summarize/prompt"
)

// Assemble assembles a context, and reports a cut that the budget forced to the hooks. If the context
// exceeds its budget, it first waits for a summary, where the policy allows that. If the next cut is worth
// a summary, it starts one in the background. summarizing is the last event of the span being summarized
// for the session, started now or by an earlier call; 0 if there is none.
func (c *Compactor) Assemble(ctx context.Context, req assemble.Request) (made *assemble.Context, summarizing eventlog.Seq, err error) {
	if patience := req.Policy.Summaries.Wait; patience > 0 {
		req.Wait = func(ctx context.Context, due summarize.Proposal) {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			_, _ = c.Scheduler.Do(ctx, due) // on an error the context is cut without a summary
		}
	}
	if made, err = c.Engine.Assemble(ctx, req); err != nil {
		return nil, 0, err
	}
	if done := made.Collapsed; done != nil {
		c.reportToHooks(lifecycle.Call{
			SessionID: req.SessionID, Mode: lifecycle.ModeAuto, Trigger: eventlog.TriggerBudgetPressure,
			Terms:        lifecycle.Terms{Strategy: string(done.Strategy), KeepLastTurns: done.KeepLastTurns, TargetTokens: done.Goal},
			Instructions: instructed(prompt.Instructions{}, req.Policy.Summaries.Instructions),
		}, *done)
	}
	if made.Proposed != nil {
		summarizing = c.propose(*made.Proposed, made.Pressure)
	}
	return made, summarizing, nil
}

// propose has a summary made ahead of need, unless a hook objects. It does not ask the hooks while the
// summarizer is resting after failures.
func (c *Compactor) propose(p summarize.Proposal, pressure decide.Pressure) eventlog.Seq {
	resting := c.Scheduler.Resting(p.Summarizer)
	return c.News.begin(p, pressure.Fresh, resting, func() {
		c.work.Go(func() {
			defer c.News.ended(p)
			// A panic ends the proposal.
			_ = guard.Run(c.Logger.With("session_id", p.SessionID), "proposal of a summary", func() error {
				c.make(p, pressure)
				return nil
			})
		})
	})
}

// make asks the hooks about a summary and has it made. The scheduler reports failures.
func (c *Compactor) make(p summarize.Proposal, pressure decide.Pressure) {
	terms := lifecycle.Terms{Strategy: string(reduce.Summarize), KeepLastTurns: pressure.KeepLastTurns, TargetTokens: pressure.Goal}
	verdict, err := c.Hooks.PreCompact(c.ctx, lifecycle.Call{
		SessionID: p.SessionID, Mode: lifecycle.ModeAuto, Trigger: eventlog.TriggerThreshold, Terms: terms,
		Policy: pressure.Policy, Instructions: instructed(prompt.Instructions{}, p.Instructions),
		MessageCount: uint32(pressure.Messages), TokensBefore: pressure.Tokens,
	})
	refused := err == nil && (verdict.Decision == lifecycle.Block || verdict.Terms.Strategy != string(reduce.Summarize))
	switch {
	case err != nil:
		return // the compactor is closing
	case refused:
		c.News.refuse(p)
		if err := c.report(c.ctx, p.SessionID, p.Of, vetoed(lifecycle.ModeAuto, eventlog.TriggerThreshold, verdict.Reason)); err != nil {
			c.Logger.Warn("veto not recorded", "session_id", p.SessionID, "error", err)
		}
	case verdict.Terms != terms:
		c.makeOther(p, verdict.Terms)
	default:
		c.do(p)
	}
}

// do has a span summarized. The scheduler reports the end, but not of a proposal that it refused to start.
func (c *Compactor) do(p summarize.Proposal) {
	_, err := c.Scheduler.Do(c.ctx, p)
	if _, ok := errors.AsType[*eventlog.InvalidError](err); ok {
		c.Logger.Warn("summary proposal dropped", "session_id", p.SessionID, "error", err)
	}
}

// makeOther plans again with the terms that a hook changed, and has that plan's span summarized, if it has
// one.
func (c *Compactor) makeOther(p summarize.Proposal, terms lifecycle.Terms) {
	plan, err := c.Engine.PlanCompaction(c.ctx, assemble.Compaction{
		SessionID: p.SessionID, Of: p.Of, Strategy: reduce.Summarize, KeepLastTurns: terms.KeepLastTurns, TargetTokens: terms.TargetTokens,
		Request: assemble.Request{Policy: assemble.Policy{Summaries: decide.SummaryPolicy{
			Summarizer: p.Summarizer, Instructions: p.Instructions, MaxInputTokens: p.MaxInputTokens,
		}}},
	})
	if err != nil {
		c.Logger.Warn("no summary by the terms of a hook", "session_id", p.SessionID, "error", err)
	} else if plan.Summary != nil {
		plan.Summary.Trigger = p.Trigger
		c.do(*plan.Summary)
	}
}
