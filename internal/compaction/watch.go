package compaction

import (
	"errors"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/lifecycle"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/summarize"
)

// Proposed implements assemble.Watcher: it has a summary made ahead of need unless a
// hook objects. One span of a session is asked about and made at a time, since each turn
// may propose another that holds most of the one before. Hooks are not asked again about
// one that they refused, nor about one whose summarizer is left alone now.
func (c *Compactor) Proposed(p summarize.Proposal, pressure assemble.Pressure) eventlog.Seq {
	c.mu.Lock()
	defer c.mu.Unlock()
	if through, ok := c.ahead[lifeOf(p)]; ok {
		return through
	}
	if c.closed || c.refused[lifeOf(p)] >= p.To || c.Scheduler.Resting(p.Summarizer) {
		return 0
	}
	c.ahead[lifeOf(p)] = p.To
	c.work.Go(func() {
		defer c.ended(p)
		c.make(p, pressure)
	})
	return p.To
}

// ended lets the next span of the session be proposed. It comes before anybody is told:
// who hears of the end may propose at once.
func (c *Compactor) ended(p summarize.Proposal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ahead[lifeOf(p)] == p.To {
		delete(c.ahead, lifeOf(p))
	}
}

// make asks the hooks about a summary and has it made. What keeps it from being made, the
// scheduler tells.
func (c *Compactor) make(p summarize.Proposal, pressure assemble.Pressure) {
	terms := lifecycle.Terms{Strategy: string(reduce.Summarize), KeepLastTurns: pressure.KeepLastTurns, TargetTokens: pressure.Goal}
	verdict, err := c.Hooks.PreCompact(c.ctx, lifecycle.Call{
		SessionID: p.SessionID, Mode: lifecycle.ModeAuto, Trigger: eventlog.TriggerThreshold, Terms: terms,
		MessageCount: uint32(pressure.Messages), TokensBefore: pressure.Tokens,
	})
	vetoed := err == nil && (verdict.Decision == lifecycle.Block || verdict.Terms.Strategy != string(reduce.Summarize))
	switch {
	case err != nil:
		return // the compactor is closing
	case vetoed:
		c.refuse(p)
		c.publish(p.SessionID, lifecycle.CompactionVetoed, lifecycle.AttributeMode, lifecycle.ModeAuto,
			lifecycle.AttributeTrigger, triggerName(eventlog.TriggerThreshold), lifecycle.AttributeReason, verdict.Reason)
	case verdict.Terms != terms:
		c.makeOther(p, verdict.Terms)
	default:
		c.do(p)
	}
}

// do has a span summarised. Its end is told by the scheduler, unless there was no
// beginning.
func (c *Compactor) do(p summarize.Proposal) {
	_, err := c.Scheduler.Do(c.ctx, p)
	var invalid *eventlog.InvalidError
	if errors.As(err, &invalid) {
		c.Logger.Warn("summary proposal dropped", "session_id", p.SessionID, "error", err)
	}
}

// makeOther has the span summarised that the hooks' terms lead to, if they lead to any.
func (c *Compactor) makeOther(p summarize.Proposal, terms lifecycle.Terms) {
	plan, err := c.Engine.PlanCompaction(c.ctx, assemble.Compaction{
		SessionID: p.SessionID, Of: p.Of, Strategy: reduce.Summarize, KeepLastTurns: terms.KeepLastTurns, TargetTokens: terms.TargetTokens,
		Request: assemble.Request{Policy: assemble.Policy{Summaries: assemble.SummaryPolicy{
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

// maxRefused bounds how many sessions' vetoes are remembered; a forgotten one is asked
// about once more.
const maxRefused = 10_000

// refuse remembers a veto.
func (c *Compactor) refuse(p summarize.Proposal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.refused) >= maxRefused {
		clear(c.refused)
	}
	c.refused[lifeOf(p)] = p.To
}

// Collapsed implements assemble.Watcher: the budget forced groups to leave.
func (c *Compactor) Collapsed(sessionID string, done assemble.Collapsed) {
	c.tell(sessionID, lifecycle.ModeAuto, eventlog.TriggerBudgetPressure, done, lifecycle.Terms{Strategy: string(done.Strategy)})
}

// ReminderExpired implements assemble.Watcher.
func (c *Compactor) ReminderExpired(sessionID, reminder string) {
	c.publish(sessionID, lifecycle.ReminderExpired, lifecycle.AttributeReminder, reminder)
}

// SummaryStarted implements summarize.Observer.
func (c *Compactor) SummaryStarted(p summarize.Proposal) {
	c.publish(p.SessionID, lifecycle.SummaryStarted, span(p)...)
}

// SummaryReady implements summarize.Observer.
func (c *Compactor) SummaryReady(p summarize.Proposal, s summarize.Summary) {
	c.ended(p)
	c.publish(p.SessionID, lifecycle.SummaryReady, append(span(p), lifecycle.AttributeSummaryID, s.ID)...)
}

// SummaryFailed implements summarize.Observer.
func (c *Compactor) SummaryFailed(p summarize.Proposal, reason string) {
	c.ended(p)
	c.publish(p.SessionID, lifecycle.SummaryFailed, append(span(p), lifecycle.AttributeReason, reason)...)
}

// BreakerChanged implements summarize.Observer.
func (c *Compactor) BreakerChanged(summarizer string, s summarize.BreakerState) {
	what := map[summarize.Health]lifecycle.Type{
		summarize.Open: lifecycle.BreakerOpen, summarize.HalfOpen: lifecycle.BreakerHalfOpen, summarize.Closed: lifecycle.BreakerClosed,
	}[s.Health]
	c.publish("", what, lifecycle.AttributeSummarizer, summarizer)
}

func span(p summarize.Proposal) []string {
	return []string{
		lifecycle.AttributeSummarizer, p.Summarizer,
		lifecycle.AttributeFromSeq, number(p.From), lifecycle.AttributeToSeq, number(p.To),
	}
}
