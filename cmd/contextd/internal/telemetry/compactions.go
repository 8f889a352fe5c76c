package telemetry

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/contextd/contextd/internal/compaction"
)

// Compactions makes a span for each requested compaction.
type Compactions struct {
	tracer trace.Tracer
	causes *causes
}

// NewCompactions returns an observer for compaction.Options.
func (t *Telemetry) NewCompactions() Compactions { return Compactions{t.tracer(), t.causes} }

// Observe is for compaction.Options.Observe.
func (o Compactions) Observe(ctx context.Context, r compaction.Request) (context.Context, func(compaction.Outcome, error)) {
	ctx, span := o.tracer.Start(ctx, "compaction", trace.WithAttributes(
		attribute.String("contextd.session.id", r.SessionID),
		attribute.String("contextd.mode", r.Mode),
	))
	o.causes.set(r.SessionID, span.SpanContext())
	return ctx, func(out compaction.Outcome, err error) {
		defer span.End()
		if err != nil {
			span.SetStatus(codes.Error, outcome(err))
			return
		}
		span.SetAttributes(
			attribute.String("contextd.outcome", out.Outcome),
			attribute.String("contextd.strategy", string(out.Strategy)),
			attribute.Int64("contextd.tokens.before", int64(out.Before.Tokens)),
		)
		if done := out.Done; done != nil {
			span.SetAttributes(
				attribute.Int64("contextd.tokens.after", int64(done.After.Tokens)),
				attribute.String("contextd.policy", done.Policy),
				attribute.Int("contextd.messages.archived", done.Archived),
			)
			if done.Summary != nil {
				span.SetAttributes(attribute.String("contextd.summary.id", done.Summary.ID))
			}
		}
	}
}

// Forget drops the span of a deleted session.
func (o Compactions) Forget(sessionID string) { o.causes.forget(sessionID) }

// causes has the newest span of each session. Spans of summaries link to it.
type causes struct {
	mu sync.Mutex
	of map[string]trace.SpanContext
}

// maxCauses bounds the number of sessions in causes. Summaries of sessions that were evicted get no link.
const maxCauses = 10_000

func (c *causes) set(sessionID string, of trace.SpanContext) {
	if !of.IsSampled() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.of[sessionID]; !known && len(c.of) >= maxCauses {
		for other := range c.of {
			delete(c.of, other)
			break
		}
	}
	c.of[sessionID] = of
}

func (c *causes) forget(sessionID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.of, sessionID)
}

// links are links to the session's newest span; none if it is not known.
func (c *causes) links(sessionID string) []trace.Link {
	c.mu.Lock()
	defer c.mu.Unlock()
	of, ok := c.of[sessionID]
	if !ok {
		return nil
	}
	return []trace.Link{{SpanContext: of}}
}
