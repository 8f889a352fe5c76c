package telemetry

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/contextd/contextd/internal/lifecycle"
)

// NewHooksMeter returns a function that counts the outcomes of hooks.
func (t *Telemetry) NewHooksMeter() (func(lifecycle.HookOutcome), error) {
	b := builder{meter: t.meter()}
	calls := b.counter("contextd.hooks.calls", "{call}", "Calls of runtimes' hooks before a compaction, by outcome: allowed, modified, vetoed, timed_out, disconnected or canceled.")
	return func(o lifecycle.HookOutcome) {
		calls.Add(context.Background(), 1, metric.WithAttributes(attribute.String("outcome", string(o))))
	}, errors.Join(b.errs...)
}

// NewLifecycleMeter returns a function that counts lifecycle events and records the state of breakers. It
// does not block.
func (t *Telemetry) NewLifecycleMeter() (func(lifecycle.Event), error) {
	b := builder{meter: t.meter()}
	var events totals[eventKind]
	b.observed("contextd.lifecycle.events", "{event}", "What happened to sessions, by type and, where it has one, summarizer.", events.observe)
	open, err := b.meter.Int64Gauge("contextd.summarizer.breaker", metric.WithDescription("1 while the summarizer is not asked because it failed too often, or is being tried again after that; else 0."))
	b.errs = append(b.errs, err)
	states := map[lifecycle.Type]int64{lifecycle.BreakerClosed: 0, lifecycle.BreakerOpen: 1, lifecycle.BreakerHalfOpen: 1}
	return func(e lifecycle.Event) {
		events.add(eventKind{string(e.Type), e.Attributes[lifecycle.AttributeSummarizer]})
		if state, ok := states[e.Type]; ok {
			open.Record(context.Background(), state, metric.WithAttributes(attribute.String("summarizer", e.Attributes[lifecycle.AttributeSummarizer])))
		}
	}, errors.Join(b.errs...)
}

// eventKind is the key by which lifecycle events are counted; summarizer may be empty.
type eventKind struct{ of, summarizer string }

func (k eventKind) attributes() []attribute.KeyValue {
	out := []attribute.KeyValue{attribute.String("type", k.of)}
	if k.summarizer != "" {
		out = append(out, attribute.String("summarizer", k.summarizer))
	}
	return out
}
