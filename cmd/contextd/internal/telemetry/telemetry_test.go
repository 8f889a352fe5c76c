package telemetry_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"
	"google.golang.org/grpc/stats"

	"github.com/contextd/contextd/cmd/contextd/internal/health"
	"github.com/contextd/contextd/cmd/contextd/internal/server"
	"github.com/contextd/contextd/cmd/contextd/internal/telemetry"
	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

func made() *assemble.Context {
	return &assemble.Context{
		SessionID: "s", AsOf: 9, PrefixHash: "sha256:x", MessageCount: 4,
		Projection: records.Projection{
			ID: "p9-0001", Policy: "thrifty", ReclaimedTokens: 60, After: reduce.State{Summary: "s7-00"},
			Steps: []reduce.Step{
				{Reducer: "duplicates", TokensBefore: 100, TokensAfter: 90, Touched: 1, Note: "n"},
				{Reducer: "clipping", TokensBefore: 90, TokensAfter: 90, Note: "nothing to clip"},
				{Reducer: "tool_results", TokensBefore: 90, TokensAfter: 40, Touched: 2},
			},
		},
		Budget: assemble.BudgetReport{Target: 80, Raw: 100, Projected: 40, State: budget.Yellow},
		Cache:  assemble.CacheReport{StableMessages: 2, BrokenBy: "tool_results"},
	}
}

// call begins a call; the returned function ends it.
func call(t *testing.T, tel *telemetry.Telemetry) (context.Context, func()) {
	t.Helper()
	h := tel.ServerHandler()
	if h == nil {
		return t.Context(), func() {}
	}
	ctx := h.TagRPC(t.Context(), &stats.RPCTagInfo{FullMethodName: contextdv1.ContextService_AssembleContext_FullMethodName})
	return ctx, func() { h.HandleRPC(ctx, &stats.End{}) }
}

// assembled makes a call that assembles a context.
func assembled(t *testing.T, tel *telemetry.Telemetry, meter *telemetry.Meter, session string, c *assemble.Context, err error) {
	t.Helper()
	ctx, end := call(t, tel)
	meter.Assembling(ctx, session)
	meter.Assembled(ctx, time.Second, c, err)
	end()
}

func TestSpans(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	tel, err := telemetry.Setup(t.Context(), telemetry.Options{SpanProcessor: spans})
	if err != nil {
		t.Fatal(err)
	}
	meter, err := tel.Of("acme").NewMeter()
	if err != nil {
		t.Fatal(err)
	}
	assembled(t, tel, meter, "s", made(), nil)
	assembled(t, tel, meter, "t", nil, &assemble.BudgetError{})
	ended := spans.Ended()
	if len(ended) != 2 {
		t.Fatalf("%d spans; want those of two calls", len(ended))
	}
	assembly := ended[0]
	if n := len(assembly.Events()); n != 2 {
		t.Fatalf("%d events; want those of the two reducers that changed something", n)
	}
	for i, want := range []struct {
		name          string
		before, after int64
	}{{"reduce duplicates", 100, 90}, {"reduce tool_results", 90, 40}} {
		event := assembly.Events()[i]
		got := map[string]int64{}
		for _, a := range event.Attributes {
			got[string(a.Key)] = a.Value.AsInt64()
		}
		if event.Name != want.name || got["contextd.tokens.before"] != want.before || got["contextd.tokens.after"] != want.after {
			t.Errorf("event %d is %s with %v", i, event.Name, got)
		}
	}
	described := map[string]string{}
	for _, a := range assembly.Attributes() {
		described[string(a.Key)] = a.Value.String()
	}
	for key, want := range map[string]string{
		"contextd.outcome": "ok", "contextd.tenant": "acme", "contextd.policy": "thrifty", "contextd.budget.state": "yellow",
		"contextd.projection.id": "p9-0001", "contextd.summary.id": "s7-00",
	} {
		if described[key] != want {
			t.Errorf("%s is %q, want %q", key, described[key], want)
		}
	}
	if failed := ended[1].Attributes(); !slices.Contains(failed, attribute.String("contextd.outcome", "over_budget")) {
		t.Errorf("a failed assembly is %v", failed)
	}
	if err := tel.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestMeter(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	tel, err := telemetry.Setup(t.Context(), telemetry.Options{MetricReader: reader})
	if err != nil {
		t.Fatal(err)
	}
	m, err := tel.NewMeter()
	if err != nil {
		t.Fatal(err)
	}
	broken := error(nil)
	store := health.Part{Name: health.Store, Healthy: func() bool { return broken == nil }}
	if err := tel.ObserveHealth([]health.Part{store, {Name: health.Hooks, Healthy: func() bool { return true }}}); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	m.Appended(ctx, time.Millisecond, 3, 300)
	m.Appended(ctx, time.Millisecond, 0, 0)
	m.Assembled(ctx, time.Second, made(), nil)
	for _, err := range []error{&assemble.BudgetError{}, &assemble.InjectionError{}, context.Canceled, errors.New("x")} {
		m.Assembled(ctx, 0, nil, err)
	}
	for _, s := range []server.Shadowed{
		{Shadow: records.Shadow{Tokens: 20, StableTokens: 5, BrokenBy: "window"}, UsedTokens: 40, UsedStable: 30},
		{Shadow: records.Shadow{OverBudget: true}, UsedTokens: 40, UsedStable: 30},
		{Err: server.ErrShadowsWait}, {Err: assemble.ErrShadowInUse}, {Err: errors.New("x")},
	} {
		s.Policy = "lean"
		m.Shadowed(ctx, s)
	}
	got := collect(t, reader)
	for name, want := range map[string]int64{
		"contextd.append.batches": 2, "contextd.append.events": 3, "contextd.append.bytes": 300,
		"contextd.assembly.count/outcome=ok/state=yellow": 1, "contextd.assembly.count/outcome=over_budget": 1,
		"contextd.assembly.count/outcome=injection_over_reserve": 1, "contextd.assembly.count/outcome=canceled": 1,
		"contextd.assembly.count/outcome=failed": 1,
		"contextd.assembly.tokens.raw":           100, "contextd.assembly.tokens.projected": 40, "contextd.assembly.tokens.reclaimed": 60,
		"contextd.prefix.breaks/cause=tool_results": 1, "contextd.part.healthy/part=store": 1, "contextd.part.healthy/part=hooks": 1,
		"contextd.shadow.count/outcome=ok/policy=lean": 1, "contextd.shadow.count/outcome=over_budget/policy=lean": 1,
		"contextd.shadow.count/outcome=skipped/policy=lean": 1, "contextd.shadow.count/outcome=same/policy=lean": 1,
		"contextd.shadow.count/outcome=failed/policy=lean": 1, "contextd.shadow.duration": 3,
		"contextd.shadow.tokens/policy=lean": 20, "contextd.shadow.tokens.stable/policy=lean": 5,
		"contextd.shadow.used.tokens/policy=lean": 40, "contextd.shadow.used.tokens.stable/policy=lean": 30,
		"contextd.shadow.prefix.breaks/cause=window/policy=lean": 1,
		"contextd.append.duration":                               2, "contextd.assembly.duration": 5,
	} {
		if got[name] != want {
			t.Errorf("%s is %d; want %d", name, got[name], want)
		}
	}
	broken = errors.New("EIO")
	if got := collect(t, reader); got["contextd.part.healthy/part=store"] != 0 || got["contextd.part.healthy/part=hooks"] != 1 {
		t.Errorf("with a failed store: %v", got)
	}
	if err := tel.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// collect returns sums, gauges, and the number of recordings of histograms.
func collect(t *testing.T, reader *sdkmetric.ManualReader) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	out := map[string]int64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				addPoints(out, m.Name, data.DataPoints)
			case metricdata.Gauge[int64]:
				addPoints(out, m.Name, data.DataPoints)
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					out[m.Name] += int64(p.Count)
				}
			}
		}
	}
	return out
}

func addPoints(out map[string]int64, name string, points []metricdata.DataPoint[int64]) {
	for _, p := range points {
		key := name
		for _, a := range p.Attributes.ToSlice() {
			key += "/" + string(a.Key) + "=" + a.Value.AsString()
		}
		out[key] += p.Value
	}
}
