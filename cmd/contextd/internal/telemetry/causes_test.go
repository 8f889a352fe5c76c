package telemetry_test

import (
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/contextd/contextd/cmd/contextd/internal/telemetry"
	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/compaction"
	"github.com/contextd/contextd/internal/decide"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/summarize"
)

// TestCompactionSpans: a compaction has a span that describes it. A summary's span links to the compaction or
// assembly of its session that the summary is written for.
func TestCompactionSpans(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	tel, err := telemetry.Setup(t.Context(), telemetry.Options{SpanProcessor: spans})
	if err != nil {
		t.Fatal(err)
	}
	summaries, err := tel.NewSummaries(func() time.Time { return time.Unix(0, 0) })
	if err != nil {
		t.Fatal(err)
	}
	summarized := func(session string) sdktrace.ReadOnlySpan {
		p := summarize.Proposal{SessionID: session, From: 1, To: 2}
		summaries.SummaryStarted(p)
		summaries.SummaryReady(p, summarize.Summary{ID: "s2"})
		ended := spans.Ended()
		return ended[len(ended)-1]
	}
	meter, err := tel.NewMeter()
	if err != nil {
		t.Fatal(err)
	}
	compactions := tel.NewCompactions()
	_, done := compactions.Observe(t.Context(), compaction.Request{Compaction: assemble.Compaction{SessionID: "s"}, Mode: "host"})
	summary := summarized("s")
	out := compaction.Outcome{Outcome: compaction.Compacted, Strategy: reduce.Summarize, Before: decide.Size{Tokens: 90}, Done: &assemble.Compacted{}}
	out.Done.After.Tokens = 40
	done(out, nil)
	ended := spans.Ended()
	span := ended[len(ended)-1]
	got := map[string]string{}
	for _, a := range span.Attributes() {
		got[string(a.Key)] = a.Value.String()
	}
	for key, want := range map[string]string{
		"contextd.session.id": "s", "contextd.mode": "host", "contextd.outcome": "compacted", "contextd.strategy": "summarize",
		"contextd.tokens.before": "90", "contextd.tokens.after": "40",
	} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
	if links := summary.Links(); len(links) != 1 || links[0].SpanContext.SpanID() != span.SpanContext().SpanID() {
		t.Errorf("the summary is linked to %v", links)
	}
	assembled(t, tel, meter, "s", made(), nil)
	ended = spans.Ended()
	if links := summarized("s").Links(); len(links) != 1 || links[0].SpanContext.SpanID() != ended[len(ended)-1].SpanContext().SpanID() {
		t.Errorf("the next summary is linked to %v", links)
	}
	if links := summarized("other").Links(); len(links) != 0 {
		t.Errorf("a summary that nothing asked for is linked to %v", links)
	}
	compactions.Forget("s")
	if links := summarized("s").Links(); len(links) != 0 {
		t.Errorf("a summary of another session that has the id is linked to %v", links)
	}
}
