package telemetry_test

import (
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/contextd/contextd/cmd/contextd/internal/telemetry"
	"github.com/contextd/contextd/internal/lifecycle"
	"github.com/contextd/contextd/internal/summarize"
)

func TestSummaries(t *testing.T) {
	spans, reader := tracetest.NewSpanRecorder(), sdkmetric.NewManualReader()
	tel, err := telemetry.Setup(t.Context(), telemetry.Options{SpanProcessor: spans, MetricReader: reader})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(0, 0)
	s, err := tel.NewSummaries(func() time.Time { now = now.Add(time.Second); return now })
	if err != nil {
		t.Fatal(err)
	}
	first := summarize.Proposal{SessionID: "s", From: 3, To: 9, Summarizer: "house"}
	other := summarize.Proposal{SessionID: "t", From: 1, To: 2, Summarizer: "house"}
	s.SummaryFailed(other, "nobody was asked")
	s.SummaryStarted(first)
	s.SummaryStarted(other)
	s.SummaryReady(first, summarize.Summary{ID: "s9-x", Model: "m", InputTokens: 70, OutputTokens: 7})
	s.SummaryFailed(other, "the model is down")
	ended := spans.Ended()
	if len(ended) != 2 {
		t.Fatalf("%d spans for two summaries", len(ended))
	}
	attributes := map[string]string{}
	for _, a := range ended[0].Attributes() {
		attributes[string(a.Key)] = a.Value.String()
	}
	for key, want := range map[string]string{
		"contextd.session.id": "s", "contextd.summarizer": "house", "contextd.from_seq": "3", "contextd.to_seq": "9",
		"contextd.summary.id": "s9-x", "contextd.model": "m", "contextd.tokens.output": "7",
	} {
		if attributes[key] != want {
			t.Errorf("%s is %q, want %q", key, attributes[key], want)
		}
	}
	if got := ended[1].Status(); got.Code != codes.Error || got.Description != "the model is down" {
		t.Errorf("a failed summary ended with %v", got)
	}
	got := collect(t, reader)
	for name, want := range map[string]int64{
		"contextd.summary.duration": 2, "contextd.summary.tokens.input/summarizer=house": 70, "contextd.summary.tokens.output/summarizer=house": 7,
	} {
		if got[name] != want {
			t.Errorf("%s is %d; want %d", name, got[name], want)
		}
	}
	if err := tel.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestLifecycleMeter(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	tel, err := telemetry.Setup(t.Context(), telemetry.Options{MetricReader: reader})
	if err != nil {
		t.Fatal(err)
	}
	observe, err := tel.NewLifecycleMeter()
	if err != nil {
		t.Fatal(err)
	}
	house := map[string]string{lifecycle.AttributeSummarizer: "house"}
	const open = "contextd.summarizer.breaker/summarizer=house"
	for _, c := range []struct {
		what lifecycle.Type
		want int64
	}{{lifecycle.BreakerOpen, 1}, {lifecycle.BreakerHalfOpen, 1}, {lifecycle.BreakerClosed, 0}} {
		observe(lifecycle.Event{Type: c.what, Attributes: house})
		if got := collect(t, reader)[open]; got != c.want {
			t.Errorf("after %s the breaker is %d, want %d", c.what, got, c.want)
		}
	}
	observe(lifecycle.Event{SessionID: "s", Type: lifecycle.Compacted})
	observe(lifecycle.Event{SessionID: "s", Type: lifecycle.Compacted})
	if got := collect(t, reader)["contextd.lifecycle.events/type=compacted"]; got != 2 {
		t.Errorf("%d compactions were counted, want 2", got)
	}
	if err := tel.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
