package summarize

import (
	"context"

	"github.com/contextd/contextd/internal/lifecycle"
	eventlog "github.com/contextd/contextd/internal/log"
)

// record stores artifacts of a proposal with the event that reports them. It calls durable when they are durable,
// before watchers are notified. When it has begun, it completes even if ctx ends.
func (s *Scheduler) record(ctx context.Context, p Proposal, e lifecycle.Event, durable func(), all ...eventlog.Artifact) error {
	return s.o.Journal.Put(ctx, lifecycle.Entry{SessionID: p.SessionID, Of: p.Of, Events: []lifecycle.Event{e}, Artifacts: all, Durable: durable})
}

// started records that a backend is about to be asked.
func (s *Scheduler) started(ctx context.Context, p Proposal, t task) error {
	a, err := t.artifact(p)
	if err != nil {
		return err
	}
	return s.record(ctx, p, p.happened(lifecycle.SummaryStarted), func() { s.o.Observer.SummaryStarted(p) }, a)
}

// ready stores a summary, and that its task is done.
func (s *Scheduler) ready(p Proposal, t task, made Summary) error {
	t.Status, t.Reason = done, ""
	a, err := t.artifact(p)
	if err != nil {
		return err
	}
	summary, err := made.artifact(p.Of)
	if err != nil {
		return err
	}
	ctx := context.WithoutCancel(s.ctx)
	return s.record(ctx, p, p.happened(lifecycle.SummaryReady, lifecycle.AttributeSummaryID, made.ID), func() {
		s.o.Sessions.Summarized(ctx, p.SessionID, made)
		s.o.Observer.SummaryReady(p, made)
	}, summary, a)
}

// unmade reports the end of a proposal without a summary, and stores the artifacts all.
func (s *Scheduler) unmade(p Proposal, reason string, all ...eventlog.Artifact) {
	told := func() { s.o.Observer.SummaryFailed(p, reason) }
	err := s.record(context.WithoutCancel(s.ctx), p, p.happened(lifecycle.SummaryFailed, lifecycle.AttributeReason, reason), told, all...)
	if err != nil {
		s.logger(err).Warn("summary task not recorded", "session_id", p.SessionID, "error", err)
		told()
	}
}

// happened returns an event about a proposal's span, with further attributes.
func (p Proposal) happened(what lifecycle.Type, attributes ...string) lifecycle.Event {
	return lifecycle.Happened(what, append(attributes, lifecycle.AttributeSummarizer, p.Summarizer,
		lifecycle.AttributeFromSeq, lifecycle.Decimal(p.From), lifecycle.AttributeToSeq, lifecycle.Decimal(p.To))...)
}
