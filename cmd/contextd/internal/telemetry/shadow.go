package telemetry

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/contextd/contextd/cmd/contextd/internal/server"
	"github.com/contextd/contextd/internal/assemble"
)

// shadowMeter counts the tokens that the shadow policy would have sent, and for comparison those of the
// contexts in use that it was computed for.
type shadowMeter struct {
	count                        metric.Int64Counter
	tokens, stable, used, usedOf metric.Int64Counter
	breaks                       metric.Int64Counter
	time                         metric.Float64Histogram
}

func newShadowMeter(b *builder) shadowMeter {
	return shadowMeter{
		count:  b.counter("contextd.shadow.count", "{context}", "Contexts with a shadow policy, by outcome: ok, over_budget, same (it is the one in use), skipped (too many waited) or failed."),
		tokens: b.counter("contextd.shadow.tokens", "{token}", "Tokens of the contexts that the shadow policy would have sent."),
		stable: b.counter("contextd.shadow.tokens.stable", "{token}", "Of these, the tokens at the beginning that are as in the shadow before, which the provider's cache would have had."),
		used:   b.counter("contextd.shadow.used.tokens", "{token}", "Tokens of the contexts in use that these were computed beside."),
		usedOf: b.counter("contextd.shadow.used.tokens.stable", "{token}", "Of these, the tokens at the beginning that are as in the context before."),
		breaks: b.counter("contextd.shadow.prefix.breaks", "{break}", "Shadows whose prefix differs from that of the one before, by the reducer that caused it."),
		time:   b.histogram("contextd.shadow.duration", "Time to compute and store a shadow, after the answer."),
	}
}

// Shadowed implements server.Meter.
func (m *Meter) Shadowed(ctx context.Context, s server.Shadowed) {
	policy := attribute.String("policy", s.Policy)
	outcome := shadowOutcome(s)
	m.shadow.count.Add(ctx, 1, metric.WithAttributes(policy, attribute.String("outcome", outcome)))
	if outcome == "skipped" || outcome == "same" {
		return
	}
	m.shadow.time.Record(ctx, s.Took.Seconds())
	if outcome != "ok" {
		return
	}
	of := metric.WithAttributes(policy)
	m.shadow.tokens.Add(ctx, int64(s.Tokens), of)
	m.shadow.stable.Add(ctx, int64(s.StableTokens), of)
	m.shadow.used.Add(ctx, int64(s.UsedTokens), of)
	m.shadow.usedOf.Add(ctx, int64(s.UsedStable), of)
	if s.BrokenBy != "" {
		m.shadow.breaks.Add(ctx, 1, metric.WithAttributes(policy, attribute.String("cause", s.BrokenBy)))
	}
}

func shadowOutcome(s server.Shadowed) string {
	switch {
	case errors.Is(s.Err, server.ErrShadowsWait):
		return "skipped"
	case errors.Is(s.Err, assemble.ErrShadowInUse):
		return "same"
	case s.Err != nil:
		return "failed"
	case s.OverBudget:
		return "over_budget"
	default:
		return "ok"
	}
}
