package telemetry

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/compaction"
)

// Observer makes a span of every assembly, with an event for each reducer; it is an
// assemble.Observer.
type Observer struct {
	tracer trace.Tracer
	causes *causes
	genAI  bool
}

// NewObserver returns the observer.
func (t *Telemetry) NewObserver() Observer { return Observer{t.tracer(), t.causes, t.genAI} }

// Assembly implements assemble.Observer.
func (o Observer) Assembly(ctx context.Context, sessionID string) (context.Context, func(*assemble.Context, error)) {
	ctx, span := o.tracer.Start(ctx, "assemble", trace.WithAttributes(attribute.String("contextd.session.id", sessionID)))
	if o.genAI {
		span.SetAttributes(genAIConversation(sessionID))
	}
	o.causes.set(sessionID, span.SpanContext())
	return ctx, func(c *assemble.Context, err error) {
		defer span.End()
		if err != nil {
			span.SetStatus(codes.Error, outcome(err))
			return
		}
		if span.IsRecording() {
			describe(span, c)
		}
	}
}

func describe(span trace.Span, c *assemble.Context) {
	span.SetAttributes(
		attribute.Int64("contextd.as_of_seq", int64(c.AsOf)),
		attribute.String("contextd.projection.id", c.Projection.ID),
		attribute.String("contextd.policy", c.Projection.Policy),
		attribute.String("contextd.budget.state", c.Budget.State.String()),
		attribute.String("contextd.summary.id", c.Projection.After.Summary),
		attribute.String("contextd.prefix.hash", c.PrefixHash),
		attribute.Int("contextd.messages", c.MessageCount),
		attribute.Int("contextd.messages.skipped", c.Skipped),
		attribute.Int("contextd.messages.stable", c.Cache.StableMessages),
		attribute.String("contextd.prefix.broken_by", c.Cache.BrokenBy),
		attribute.Int64("contextd.tokens.target", int64(c.Budget.Target)),
		attribute.Int64("contextd.tokens.before", int64(c.Budget.Raw)),
		attribute.Int64("contextd.tokens.after", int64(c.Budget.Projected)),
	)
	// The pipeline is pure and knows no clock, so that a reducer has no time that a span could show.
	for _, step := range c.Projection.Steps {
		span.AddEvent("reduce "+step.Reducer, trace.WithAttributes(
			attribute.Int64("contextd.tokens.before", int64(step.TokensBefore)),
			attribute.Int64("contextd.tokens.after", int64(step.TokensAfter)),
			attribute.Int("contextd.touched", step.Touched),
			attribute.String("contextd.note", step.Note),
		))
	}
}

// Compaction makes a span of a compaction that somebody asked for; it is the Observe of
// compaction.Options.
func (o Observer) Compaction(ctx context.Context, r compaction.Request) (context.Context, func(compaction.Outcome, error)) {
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

// Forget ends what is known of a session that was deleted.
func (o Observer) Forget(sessionID string) { o.causes.forget(sessionID) }

// causes are the newest spans of sessions: what a summary is made for is linked to them.
type causes struct {
	mu sync.Mutex
	of map[string]trace.SpanContext
}

// maxCauses bounds how many sessions' spans are known; a summary of a forgotten one has no
// link.
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

// links are those of a session's newest span; none if it has none.
func (c *causes) links(sessionID string) []trace.Link {
	c.mu.Lock()
	defer c.mu.Unlock()
	of, ok := c.of[sessionID]
	if !ok {
		return nil
	}
	return []trace.Link{{SpanContext: of}}
}
