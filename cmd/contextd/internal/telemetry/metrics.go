package telemetry

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/contextd/contextd/cmd/contextd/internal/health"
	"github.com/contextd/contextd/cmd/contextd/internal/transport"
	"github.com/contextd/contextd/internal/guard"
	"github.com/contextd/contextd/internal/memory"
	"github.com/contextd/contextd/internal/records"
)

// Meter records what the services do. It implements server.Meter.
type Meter struct {
	genAI  bool
	tenant string
	causes *causes

	batches, events, bytes *atomic.Int64
	appendTime             metric.Float64Histogram

	assemblies                totals[outcomeState]
	assemblyTime              metric.Float64Histogram
	raw, projected, reclaimed *atomic.Int64
	breaks                    metric.Int64Counter
	scrubbed                  metric.Int64Counter
	modelTokens               metric.Int64Counter
	failed                    metric.Int64Counter
	shadow                    shadowMeter
}

// latency are the histogram bounds of durations, in seconds. A sync takes a millisecond on a good disk, and a
// second on a bad one; a model takes a minute to write a summary.
var latency = metric.WithExplicitBucketBoundaries(.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300)

// NewMeter creates the instruments.
func (t *Telemetry) NewMeter() (*Meter, error) {
	b := builder{meter: t.meter()}
	m := &Meter{
		genAI: t.genAI, tenant: t.tenant, causes: t.causes,
		batches:      b.total("contextd.append.batches", "{batch}", "Batches that became durable."),
		events:       b.total("contextd.append.events", "{event}", "Events that became durable, duplicates not counted."),
		bytes:        b.total("contextd.append.bytes", "By", "Content of these events."),
		appendTime:   b.histogram("contextd.append.duration", "Time from accepting a batch of events until it is safe on the disk."),
		assemblyTime: b.histogram("contextd.assembly.duration", "Time to make a context, sending it not counted."),
		raw:          b.total("contextd.assembly.tokens.raw", "{token}", "Tokens of the logs that contexts were made of."),
		projected:    b.total("contextd.assembly.tokens.projected", "{token}", "Tokens of the contexts made."),
		reclaimed:    b.total("contextd.assembly.tokens.reclaimed", "{token}", "Tokens that reduction saved."),
		scrubbed:     b.counter("contextd.append.scrubbed", "{credential}", "Credentials that were replaced before events were stored, by the rule that found them."),
		modelTokens:  b.counter("contextd.model.tokens", "{token}", "Tokens of model calls as their providers counted them, by type: input (neither read from a cache nor written to one), cache_read, cache_write, output."),
		failed:       b.counter("contextd.calls.failed", "{call}", "Calls that ended in an error, by its reason and, where it is one of a limit, the setting."),
		breaks:       b.counter("contextd.prefix.breaks", "{break}", "Contexts whose prefix differs from that of the one before, by the reducer that caused it."),
	}
	m.shadow = newShadowMeter(&b)
	b.observed("contextd.assembly.count", "{assembly}", "Assemblies by outcome: ok, over_budget, injection_over_reserve, canceled or failed; those that are ok also by the state of their budget.", m.assemblies.observe)
	return m, errors.Join(b.errs...)
}

// ObserveHealth reports the health of each part of the daemon.
func (t *Telemetry) ObserveHealth(parts []health.Part) error {
	_, err := t.meter().Int64ObservableGauge("contextd.part.healthy",
		metric.WithDescription("1 while a part of the daemon is well, 0 while it is not. A store that failed stays at 0."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			for _, p := range parts {
				name, _ := health.Label(p.Name)
				value := int64(0)
				if p.Healthy() {
					value = 1
				}
				o.Observe(value, metric.WithAttributes(attribute.String("part", name)))
			}
			return nil
		}))
	if err != nil {
		return fmt.Errorf("health gauge: %w", err)
	}
	return nil
}

// ObserveCertificate reports how long the daemon's certificate is valid, where it has one.
func (t *Telemetry) ObserveCertificate(valid func() (lifetime, remaining time.Duration, has bool)) error {
	m := t.meter()
	lifetime, err := m.Float64ObservableGauge("contextd.certificate.lifetime", metric.WithUnit("s"),
		metric.WithDescription("How long the daemon's certificate is valid in all."))
	if err != nil {
		return fmt.Errorf("certificate gauges: %w", err)
	}
	remaining, err := m.Float64ObservableGauge("contextd.certificate.remaining", metric.WithUnit("s"),
		metric.WithDescription("How long the daemon's certificate is still valid; negative once it has expired."))
	if err != nil {
		return fmt.Errorf("certificate gauges: %w", err)
	}
	_, err = m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		if all, left, has := valid(); has {
			o.ObserveFloat64(lifetime, all.Seconds())
			o.ObserveFloat64(remaining, left.Seconds())
		}
		return nil
	}, lifetime, remaining)
	return err
}

// ObservePanics reports how many panics of background work were contained.
func (t *Telemetry) ObservePanics() error {
	_, err := t.meter().Int64ObservableCounter("contextd.panics",
		metric.WithDescription("Panics of background work that were contained. Each is a bug; the log has the stack."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(guard.Panics())
			return nil
		}))
	if err != nil {
		return fmt.Errorf("panic counter: %w", err)
	}
	return nil
}

// ObserveConnections reports how many connections are open, and how others ended.
func (t *Telemetry) ObserveConnections(counts func() transport.ConnectionCounts) error {
	m := t.meter()
	open, err := m.Int64ObservableGauge("contextd.connections.open", metric.WithUnit("{connection}"),
		metric.WithDescription("Connections that are open."))
	if err != nil {
		return fmt.Errorf("connection metrics: %w", err)
	}
	var counters [3]metric.Int64ObservableCounter
	for i, c := range []struct{ name, description string }{
		{"contextd.connections.accepted", "Connections that were accepted."},
		{"contextd.connections.refused", "Connections beyond the limit, on which only the health could be asked for."},
		{"contextd.connections.evicted", "Connections that the daemon closed, to make room or because the client did not read its answer."},
	} {
		if counters[i], err = m.Int64ObservableCounter(c.name, metric.WithUnit("{connection}"), metric.WithDescription(c.description)); err != nil {
			return fmt.Errorf("connection metrics: %w", err)
		}
	}
	_, err = m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		c := counts()
		o.ObserveInt64(open, c.Open)
		o.ObserveInt64(counters[0], c.Accepted)
		o.ObserveInt64(counters[1], c.Refused)
		o.ObserveInt64(counters[2], c.Evicted)
		return nil
	}, open, counters[0], counters[1], counters[2])
	return err
}

// ObserveMemory reports how much of each memory budget is used, and how many calls it refused.
func (t *Telemetry) ObserveMemory(budgets map[string]*memory.Budget) error {
	m := t.meter()
	used, err := m.Int64ObservableGauge("contextd.memory.used", metric.WithUnit("By"),
		metric.WithDescription("Memory of each budget that calls use now."))
	if err != nil {
		return fmt.Errorf("memory metrics: %w", err)
	}
	refused, err := m.Int64ObservableCounter("contextd.memory.refused", metric.WithUnit("{call}"),
		metric.WithDescription("Calls that were refused after waiting for memory."))
	if err != nil {
		return fmt.Errorf("memory metrics: %w", err)
	}
	_, err = m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for name, b := range budgets {
			of := metric.WithAttributes(attribute.String("budget", name))
			o.ObserveInt64(used, b.Used(), of)
			o.ObserveInt64(refused, b.Refused(), of)
		}
		return nil
	}, used, refused)
	return err
}

// Limit is what a setting allows, and how much of that is used now.
type Limit struct {
	Max  uint64 // 0 is no limit
	Used func() int64
}

// ObserveLimits reports limits by their settings.
func (t *Telemetry) ObserveLimits(limits map[string]Limit) error {
	m := t.meter()
	used, err := m.Int64ObservableGauge("contextd.limit.used",
		metric.WithDescription("How much is used of what a setting allows: calls, assemblies, sessions or bytes."))
	if err != nil {
		return fmt.Errorf("limit gauges: %w", err)
	}
	most, err := m.Int64ObservableGauge("contextd.limit.max",
		metric.WithDescription("What a setting allows. There is no value where there is no limit."))
	if err != nil {
		return fmt.Errorf("limit gauges: %w", err)
	}
	_, err = m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for setting, l := range limits {
			of := metric.WithAttributes(attribute.String("setting", setting))
			o.ObserveInt64(used, l.Used(), of)
			if l.Max > 0 {
				o.ObserveInt64(most, int64(min(l.Max, math.MaxInt64)), of)
			}
		}
		return nil
	}, used, most)
	return err
}

// ObserveSessions reports how many sessions exist, and the size of their logs.
func (t *Telemetry) ObserveSessions(sessions, bytes func() int64) error {
	var errs []error
	for _, g := range []struct {
		name, unit, description string
		now                     func() int64
	}{
		{"contextd.sessions", "{session}", "How many sessions there are.", sessions},
		{"contextd.sessions.size", "By", "Size of all logs and of what is derived from them; what forks share counts once for each.", bytes},
	} {
		_, err := t.meter().Int64ObservableGauge(g.name, metric.WithUnit(g.unit), metric.WithDescription(g.description),
			metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
				o.Observe(g.now())
				return nil
			}))
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Appended implements server.Meter.
func (m *Meter) Appended(ctx context.Context, took time.Duration, events int, bytes uint64) {
	m.batches.Add(1)
	m.events.Add(int64(events))
	m.bytes.Add(int64(bytes))
	m.appendTime.Record(ctx, took.Seconds())
}

// Recorded counts the tokens of a reported model call, and adds its attributes to the current span.
func (m *Meter) Recorded(ctx context.Context, c records.Call) {
	cached := min(c.InputTokens, c.CacheReadTokens+c.CacheWriteTokens)
	for _, n := range []struct {
		kind   string
		tokens uint64
	}{{"input", c.InputTokens - cached}, {"cache_read", c.CacheReadTokens}, {"cache_write", c.CacheWriteTokens}, {"output", c.OutputTokens}} {
		if n.tokens > 0 {
			m.modelTokens.Add(ctx, int64(min(n.tokens, math.MaxInt64)), metric.WithAttributes(attribute.String("type", n.kind)))
		}
	}
	if m.genAI {
		trace.SpanFromContext(ctx).SetAttributes(genAICall(c)...)
	}
}

// Failed counts a call that ended in an error. setting is empty unless a limit was exceeded.
func (m *Meter) Failed(ctx context.Context, reason, setting string) {
	attributes := []attribute.KeyValue{attribute.String("reason", reason)}
	if setting != "" {
		attributes = append(attributes, attribute.String("setting", setting))
	}
	m.failed.Add(ctx, 1, metric.WithAttributes(attributes...))
}

// Scrubbed counts credentials that a rule replaced before they were stored.
func (m *Meter) Scrubbed(rule string, n int) {
	m.scrubbed.Add(context.Background(), int64(n), metric.WithAttributes(attribute.String("rule", rule)))
}

// totals are counters by attribute set, of which there must be few. They are read when metrics are collected,
// so that adding is cheap: a counter of the SDK would look up its attributes and keep an exemplar at each
// add.
type totals[K interface {
	comparable
	attributes() []attribute.KeyValue
}] struct{ of sync.Map }

type total struct {
	n          atomic.Int64
	attributes metric.ObserveOption
}

func (t *totals[K]) add(key K) {
	of, ok := t.of.Load(key)
	if !ok {
		of, _ = t.of.LoadOrStore(key, &total{attributes: metric.WithAttributeSet(attribute.NewSet(key.attributes()...))})
	}
	of.(*total).n.Add(1)
}

func (t *totals[K]) observe(_ context.Context, o metric.Int64Observer) error {
	t.of.Range(func(_, each any) bool {
		of := each.(*total)
		o.Observe(of.n.Load(), of.attributes)
		return true
	})
	return nil
}

// builder creates instruments and collects the errors.
type builder struct {
	meter metric.Meter
	errs  []error
}

func (b *builder) counter(name, unit, description string) metric.Int64Counter {
	c, err := b.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
	b.errs = append(b.errs, err)
	return c
}

// observed creates a counter that is read when metrics are collected.
func (b *builder) observed(name, unit, description string, observe metric.Int64Callback) {
	_, err := b.meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(description), metric.WithInt64Callback(observe))
	b.errs = append(b.errs, err)
}

// total creates a counter without attributes, which is read when metrics are collected.
func (b *builder) total(name, unit, description string) *atomic.Int64 {
	var n atomic.Int64
	b.observed(name, unit, description, func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(n.Load())
		return nil
	})
	return &n
}

func (b *builder) histogram(name, description string) metric.Float64Histogram {
	h, err := b.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description), latency)
	b.errs = append(b.errs, err)
	return h
}
