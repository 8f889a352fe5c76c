package telemetry

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/contextd/contextd/internal/summarize"
)

// Summaries makes a span for every summary and measures it. Spans contain no text of the session, and no key.
type Summaries struct {
	tracer        trace.Tracer
	causes        *causes
	clock         func() time.Time
	duration      metric.Float64Histogram
	input, output metric.Int64Counter

	mu      sync.Mutex
	running map[string]running // by session, which has one task at a time
}

type running struct {
	span  trace.Span
	since time.Time
}

// NewSummaries makes the instruments.
func (t *Telemetry) NewSummaries(clock func() time.Time) (*Summaries, error) {
	b := builder{meter: t.meter()}
	s := &Summaries{
		tracer: t.tracer(), causes: t.causes, clock: clock, running: map[string]running{},
		duration: b.histogram("contextd.summary.duration", "Time to make a summary, by summarizer and outcome: ready or failed."),
		input:    b.counter("contextd.summary.tokens.input", "{token}", "Tokens that summarizers were given, by their own count."),
		output:   b.counter("contextd.summary.tokens.output", "{token}", "Tokens that summarizers wrote, by their own count."),
	}
	return s, errors.Join(b.errs...)
}

// SummaryStarted begins the span of a summary.
func (s *Summaries) SummaryStarted(p summarize.Proposal) {
	//nolint:spancheck // end does, when the summary is ready or has failed
	_, span := s.tracer.Start(context.Background(), "summarize", trace.WithAttributes(
		attribute.String("contextd.session.id", p.SessionID),
		attribute.String("contextd.summarizer", p.Summarizer),
		attribute.Int64("contextd.from_seq", int64(p.From)),
		attribute.Int64("contextd.to_seq", int64(p.To)),
		attribute.String("contextd.trigger", p.Trigger),
	), trace.WithLinks(s.causes.links(p.SessionID)...))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[p.SessionID] = running{span, s.clock()}
} //nolint:spancheck // see above

// SummaryReady ends the span of a summary that was written.
func (s *Summaries) SummaryReady(p summarize.Proposal, made summarize.Summary) {
	by := metric.WithAttributes(attribute.String("summarizer", p.Summarizer))
	s.input.Add(context.Background(), int64(made.InputTokens), by)
	s.output.Add(context.Background(), int64(made.OutputTokens), by)
	s.end(p, "ready", func(span trace.Span) {
		span.SetAttributes(
			attribute.String("contextd.summary.id", made.ID),
			attribute.String("contextd.model", made.Model),
			attribute.Int64("contextd.tokens.input", int64(made.InputTokens)),
			attribute.Int64("contextd.tokens.output", int64(made.OutputTokens)),
		)
	})
}

// SummaryFailed ends the span of a summary that failed.
func (s *Summaries) SummaryFailed(p summarize.Proposal, reason string) {
	s.end(p, "failed", func(span trace.Span) { span.SetStatus(codes.Error, reason) })
}

func (s *Summaries) end(p summarize.Proposal, outcome string, describe func(trace.Span)) {
	s.mu.Lock()
	r, ok := s.running[p.SessionID]
	delete(s.running, p.SessionID)
	s.mu.Unlock()
	if !ok {
		return // it failed before it started
	}
	s.duration.Record(context.Background(), s.clock().Sub(r.since).Seconds(), metric.WithAttributes(
		attribute.String("summarizer", p.Summarizer), attribute.String("outcome", outcome)))
	describe(r.span)
	r.span.End()
}
