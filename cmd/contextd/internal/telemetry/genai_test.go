package telemetry_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/contextd/contextd/cmd/contextd/internal/telemetry"
	"github.com/contextd/contextd/internal/records"
)

func TestModelCallsInTheConventionsForGenerativeAI(t *testing.T) {
	for asked, want := range map[string][]string{
		"": nil,
		"http, gen_ai_latest_experimental": {
			"gen_ai.conversation.id=s", "gen_ai.request.model=m", `gen_ai.response.finish_reasons=["end_turn"]`,
			"gen_ai.usage.cache_creation.input_tokens=20", "gen_ai.usage.cache_read.input_tokens=70",
			"gen_ai.usage.input_tokens=100", "gen_ai.usage.output_tokens=7",
		},
	} {
		spans := tracetest.NewSpanRecorder()
		tel, err := telemetry.Setup(t.Context(), telemetry.Options{
			SpanProcessor: spans, Prometheus: true, Version: "1",
			LookupEnv: func(name string) (string, bool) { return asked, name == "OTEL_SEMCONV_STABILITY_OPT_IN" },
		})
		if err != nil {
			t.Fatal(err)
		}
		meter, err := tel.NewMeter()
		if err != nil {
			t.Fatal(err)
		}
		ctx, end := call(t, tel)
		meter.Recorded(ctx, records.Call{
			SessionID: "s", Model: "m", InputTokens: 100, CacheReadTokens: 70, CacheWriteTokens: 20, OutputTokens: 7, StopReason: "end_turn",
		})
		meter.Appended(ctx, time.Millisecond, 1, 10)
		meter.Failed(ctx, "BUSY", "work_memory")
		meter.Failed(ctx, "NOT_FOUND", "")
		end()
		got := map[string]bool{}
		for _, a := range spans.Ended()[len(spans.Ended())-1].Attributes() {
			if strings.HasPrefix(string(a.Key), "gen_ai.") {
				got[string(a.Key)+"="+a.Value.String()] = true
			}
		}
		if all := slices.Sorted(maps.Keys(got)); !slices.Equal(all, want) {
			t.Errorf("asked for %q the span has %v, want %v", asked, all, want)
		}

		page := httptest.NewRecorder()
		request := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
		request.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
		tel.MetricsHandler().ServeHTTP(page, request)
		body := page.Body.String()
		for _, line := range []string{
			`type="input"} 10.0`, `type="cache_read"} 70.0`,
			`type="cache_write"} 20.0`, `type="output"} 7.0`,
			`reason="BUSY",setting="work_memory"} 1.0`, `reason="NOT_FOUND"} 1.0`,
		} {
			if !strings.Contains(body, line) {
				t.Errorf("the metrics lack %s", line)
			}
		}
		trace := spans.Ended()[0].SpanContext().TraceID().String()
		if !strings.Contains(body, `trace_id="`+trace+`"`) {
			t.Error("no metric names the trace")
		}
		if strings.Contains(body, `=""`) {
			t.Errorf("a label is empty:\n%s", body)
		}
		if err := tel.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
