package server_test

import (
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/harness"
	"github.com/contextd/contextd/internal/log/memlog"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// TestExportOfDecisions: a file holds the callers' compactions in effect, and none that was
// reverted; as compacted it is what a context shows.
func TestExportOfDecisions(t *testing.T) {
	a := serve(t, memlog.New())
	if _, err := a.importInto(t, "s", longTranscript(12)); err != nil {
		t.Fatal(err)
	}
	mark := func(summary string, d *contextdv1.CompactionDecision) {
		t.Helper()
		e := &contextdv1.Event{Kind: &contextdv1.Event_Compaction{Compaction: &contextdv1.Compaction{Summary: summary, Decision: d}}}
		if _, err := a.AppendEvents(t.Context(), &contextdv1.AppendEventsRequest{SessionId: "s", Events: []*contextdv1.Event{e}}); err != nil {
			t.Fatal(err)
		}
	}
	mark("The first stays.", &contextdv1.CompactionDecision{ThroughSeq: 8, DigestTokens: 2000, SummaryId: "one", SummaryThroughSeq: 8, SummaryBy: "me"})
	seq := uint64(len(a.read(t, "s")) + 1)
	mark("The second goes.", &contextdv1.CompactionDecision{ThroughSeq: 14, DigestTokens: 2000, SummaryId: "two", SummaryThroughSeq: 14, SummaryBy: "me"})
	mark("", &contextdv1.CompactionDecision{UndoesSeq: seq})
	for _, name := range harness.Writers() {
		plain, report, err := a.export(t, &contextdv1.ExportTranscriptRequest{SessionId: "s", Harness: name})
		if err != nil || report.GetCompactions() != 1 {
			t.Fatalf("%s: %v, %v", name, report, err)
		}
		compacted, report, err := a.export(t, &contextdv1.ExportTranscriptRequest{
			SessionId: "s", Harness: name, AsCompacted: true, Budget: &contextdv1.Budget{MaxTokens: 1_000_000},
		})
		if err != nil || report.GetCompactions() == 0 {
			t.Fatalf("%s as compacted: %v, %v", name, report, err)
		}
		for what, file := range map[string]string{"whole": string(plain), "as compacted": string(compacted)} {
			if !strings.Contains(file, "The first stays.") || strings.Contains(file, "The second goes.") {
				t.Errorf("%s, %s: the first is there: %v, the second: %v", name, what, strings.Contains(file, "The first stays."), strings.Contains(file, "The second goes."))
			}
		}
	}
}
