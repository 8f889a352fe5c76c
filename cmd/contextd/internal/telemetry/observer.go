package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/contextd/contextd/internal/assemble"
)

// Observer makes a span of every assembly, with a child for each reducer; it is
// an assemble.Observer.
type Observer struct{ tracer trace.Tracer }

// NewObserver returns the observer.
func (t *Telemetry) NewObserver() Observer { return Observer{t.traces.Tracer(scope)} }

// Assembly implements assemble.Observer.
func (o Observer) Assembly(ctx context.Context, sessionID string) (context.Context, func(*assemble.Context, error)) {
	ctx, span := o.tracer.Start(ctx, "assemble", trace.WithAttributes(attribute.String("contextd.session.id", sessionID)))
	return ctx, func(c *assemble.Context, err error) {
		defer span.End()
		if err != nil {
			span.SetStatus(codes.Error, outcome(err))
			return
		}
		if span.IsRecording() {
			o.describe(ctx, span, c)
		}
	}
}

func (o Observer) describe(ctx context.Context, span trace.Span, c *assemble.Context) {
	span.SetAttributes(
		attribute.Int64("contextd.as_of_seq", int64(c.AsOf)),
		attribute.String("contextd.projection.id", c.Projection.ID),
		attribute.String("contextd.prefix.hash", c.PrefixHash),
		attribute.Int("contextd.messages", c.MessageCount),
		attribute.Int("contextd.messages.skipped", c.Skipped),
		attribute.Int("contextd.messages.stable", c.Cache.StableMessages),
		attribute.String("contextd.prefix.broken_by", c.Cache.BrokenBy),
		attribute.Int64("contextd.tokens.target", int64(c.Budget.Target)),
		attribute.Int64("contextd.tokens.before", int64(c.Budget.Raw)),
		attribute.Int64("contextd.tokens.after", int64(c.Budget.Projected)),
	)
	// The pipeline is pure and knows no clock: a reducer's span says what it did,
	// not how long it took.
	for _, step := range c.Projection.Steps {
		_, child := o.tracer.Start(ctx, "reduce "+step.Reducer, trace.WithAttributes(
			attribute.Int64("contextd.tokens.before", int64(step.TokensBefore)),
			attribute.Int64("contextd.tokens.after", int64(step.TokensAfter)),
			attribute.Int("contextd.touched", step.Touched),
			attribute.String("contextd.note", step.Note),
		))
		child.End()
	}
}
