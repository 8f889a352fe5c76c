package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"go.opentelemetry.io/otel/trace"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/cmd/contextd/internal/daemon"
	"github.com/contextd/contextd/internal/quote"
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

// TestLoggedTextsAreBounded: a value that somebody else wrote is a part of one line, and not all of the disk.
func TestLoggedTextsAreBounded(t *testing.T) {
	for _, text := range []string{
		"\n2026 ERROR forged", "\x1b[2J", "a\x7fb", "\u009b2J", "\u202eabc", "a\u2028b", "a\u0085b", "\U000e0041", "\xff\xfe", strings.Repeat("日", 1<<20),
	} {
		for _, format := range []string{config.LogJSON, config.LogText} {
			settings := config.Default()
			settings.LogFormat = format
			var out bytes.Buffer
			daemon.NewLogger(settings, &out).Warn("failed", "session_id", text, "error", errors.New(text))
			line, ended := strings.CutSuffix(out.String(), "\n")
			if !ended || len(line) > 48<<10 || !utf8.ValidString(line) || strings.ContainsFunc(line, quote.Unseen) {
				t.Errorf("%s: %.200q is %d bytes: %.200q", format, text, len(line), line)
			}
			var got map[string]any
			if format == config.LogJSON && len(text) < 100 && (json.Unmarshal([]byte(line), &got) != nil || got["error"] != strings.ToValidUTF8(text, "\ufffd\ufffd")) {
				t.Errorf("%q became %q", text, got["error"])
			}
		}
	}
}
