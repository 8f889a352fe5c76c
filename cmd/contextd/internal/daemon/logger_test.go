package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/cmd/contextd/internal/daemon"
)

// A line that is written in a span says in which, in both formats and from loggers with
// attributes or groups of their own; any other line says nothing of spans.
func TestLogLinesNameTheirTrace(t *testing.T) {
	within := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}}))
	for _, format := range []string{config.LogJSON, config.LogText} {
		settings := config.Default()
		settings.LogFormat = format
		for name, ctx := range map[string]context.Context{"in a span": within, "in none": t.Context()} {
			var out bytes.Buffer
			logger := daemon.NewLogger(settings, &out)
			logger.With("session_id", "s").WarnContext(ctx, "slow")
			line := out.String()
			if format == config.LogJSON {
				var got map[string]any
				if err := json.Unmarshal(out.Bytes(), &got); err != nil || got["session_id"] != "s" {
					t.Fatalf("%s: %s: %v", name, line, err)
				}
			}
			want := name == "in a span"
			for _, id := range []string{"01000000000000000000000000000000", "0200000000000000"} {
				if strings.Contains(line, id) != want {
					t.Errorf("%s, %s: %s", name, format, line)
				}
			}
			if strings.Contains(line, "trace_id") != want {
				t.Errorf("%s, %s: %s", name, format, line)
			}
		}
	}
}

// detailed has more to say than fits into a line, as errors with a stack have.
type detailed struct{}

func (detailed) Error() string { return "disk full" }

func (d detailed) Format(f fmt.State, _ rune) { fmt.Fprint(f, d.Error(), "\n(1) attached stack trace") }

func TestLoggedErrorsAreTheirText(t *testing.T) {
	for _, format := range []string{config.LogJSON, config.LogText} {
		settings := config.Default()
		settings.LogFormat = format
		var out bytes.Buffer
		daemon.NewLogger(settings, &out).Warn("failed", "error", detailed{})
		if !strings.Contains(out.String(), "disk full") || strings.Contains(out.String(), "stack") {
			t.Errorf("%s: %s", format, out.String())
		}
	}
}
