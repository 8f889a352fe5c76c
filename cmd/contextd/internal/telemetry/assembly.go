package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/contextd/contextd/internal/assemble"
)

// outcomeState is how an assembly ended. state is the budget's state; empty if the assembly failed.
type outcomeState struct{ outcome, state string }

func (o outcomeState) attributes() []attribute.KeyValue {
	out := []attribute.KeyValue{attribute.String("outcome", o.outcome)}
	if o.state != "" {
		out = append(out, attribute.String("state", o.state))
	}
	return out
}

// Assembling implements server.Meter.
func (m *Meter) Assembling(ctx context.Context, sessionID string) {
	span := trace.SpanFromContext(ctx)
	m.causes.set(sessionID, span.SpanContext())
	if m.genAI {
		span.SetAttributes(genAIConversation(sessionID))
	}
	if m.tenant != "" {
		span.SetAttributes(attribute.String("contextd.tenant", m.tenant))
	}
}

// Assembled implements server.Meter.
func (m *Meter) Assembled(ctx context.Context, took time.Duration, c *assemble.Context, err error) {
	ended := outcomeState{outcome: outcome(err)}
	if c != nil {
		ended.state = c.Budget.State.String()
	}
	m.assemblies.add(ended)
	m.assemblyTime.Record(ctx, took.Seconds())
	span := trace.SpanFromContext(ctx)
	span.SetAttributes(attribute.String("contextd.outcome", ended.outcome))
	if c == nil {
		return
	}
	if span.IsRecording() {
		describe(span, c)
	}
	m.raw.Add(int64(c.Budget.Raw))
	m.projected.Add(int64(c.Budget.Projected))
	m.reclaimed.Add(max(c.Projection.ReclaimedTokens, 0))
	if c.Cache.BrokenBy != "" {
		m.breaks.Add(ctx, 1, metric.WithAttributes(attribute.String("cause", c.Cache.BrokenBy)))
	}
}

func outcome(err error) string {
	var over *assemble.BudgetError
	var injection *assemble.InjectionError
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &over):
		return "over_budget"
	case errors.As(err, &injection):
		return "injection_over_reserve"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "canceled"
	default:
		return "failed"
	}
}

// describe adds a context's facts to the span of its call. A span of its own would cost as much as all the
// rest.
func describe(span trace.Span, c *assemble.Context) {
	of := append(make([]attribute.KeyValue, 0, 16),
		attribute.Int64("contextd.as_of_seq", int64(c.AsOf)),
		attribute.String("contextd.projection.id", c.Projection.ID),
		attribute.String("contextd.policy", c.Projection.Policy),
		attribute.String("contextd.budget.state", c.Budget.State.String()),
		attribute.String("contextd.prefix.hash", c.PrefixHash),
		attribute.Int("contextd.messages", c.MessageCount),
		attribute.Int("contextd.messages.skipped", c.Skipped),
		attribute.Int("contextd.messages.stable", c.Cache.StableMessages),
		attribute.Int64("contextd.tokens.target", int64(c.Budget.Target)),
		attribute.Int64("contextd.tokens.before", int64(c.Budget.Raw)),
		attribute.Int64("contextd.tokens.after", int64(c.Budget.Projected)),
	)
	if id := c.Projection.After.Summary; id != "" {
		of = append(of, attribute.String("contextd.summary.id", id))
	}
	if by := c.Cache.BrokenBy; by != "" {
		of = append(of, attribute.String("contextd.prefix.broken_by", by))
	}
	span.SetAttributes(of...)
	// Adding an event costs more than anything else here, so reducers that changed nothing get none. It has
	// no duration: reducers are pure and read no clock.
	for _, step := range c.Projection.Steps {
		if step.Touched == 0 {
			continue
		}
		span.AddEvent("reduce "+step.Reducer, trace.WithAttributes(
			attribute.Int64("contextd.tokens.before", int64(step.TokensBefore)),
			attribute.Int64("contextd.tokens.after", int64(step.TokensAfter)),
			attribute.Int("contextd.touched", step.Touched),
			attribute.String("contextd.note", step.Note),
		))
	}
}
