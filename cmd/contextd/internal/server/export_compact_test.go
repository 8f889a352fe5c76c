package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/harness"
	"github.com/contextd/contextd/internal/log/memlog"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// longTranscript is a run of so many tool steps, in OpenAI's form.
func longTranscript(steps int) string {
	var b strings.Builder
	b.WriteString(`[{"role":"system","content":"You are an agent."},{"role":"user","content":"Read everything."}`)
	for i := range steps {
		body := strings.Repeat(fmt.Sprintf("line of file %d with some words in it\\n", i), 40)
		fmt.Fprintf(&b, `,{"role":"assistant","content":"Reading %d.","tool_calls":[{"id":"c%d","type":"function","function":{"name":"read","arguments":"{\"path\":\"src/f%d.go\"}"}}]}`, i, i, i)
		fmt.Fprintf(&b, `,{"role":"tool","tool_call_id":"c%d","content":"%s"}`, i, body)
	}
	b.WriteString(`,{"role":"assistant","content":"I have read everything."}]`)
	return b.String()
}

// TestExportAsCompacted shrinks a long session and resumes from what each writer made
// of it: the harness's view is the summary and what was kept, within the budget.
func TestExportAsCompacted(t *testing.T) {
	const limit = 12_000
	a := serve(t, memlog.New())
	if _, err := a.importInto(t, "long", longTranscript(60)); err != nil {
		t.Fatal(err)
	}
	for _, name := range harness.Writers() {
		req := &contextdv1.ExportTranscriptRequest{
			SessionId: "long", Harness: name, AsCompacted: true, Budget: &contextdv1.Budget{MaxTokens: limit},
		}
		data, report, err := a.export(t, req)
		if err != nil {
			t.Fatal(err)
		}
		if again, _, err := a.export(t, req); err != nil || string(again) != string(data) {
			t.Errorf("%s: exported again, the file is another: %v", name, err)
		}
		if report.GetCompactions() != 1 {
			t.Errorf("%s: reported %v", name, report)
		}
		id := "resumed/" + name
		if _, err := a.importAs(t, id, name, string(data)); err != nil {
			t.Fatal(err)
		}
		boundary := onlyCompaction(t, a.read(t, id))
		if !strings.Contains(boundary.GetSummary(), "src/f0.go") {
			t.Errorf("%s: the summary does not name the first call: %.300s", name, boundary.GetSummary())
		}
		got, err := a.assemble(t, &contextdv1.AssembleContextRequest{
			SessionId: id, Budget: &contextdv1.Budget{MaxTokens: 1_000_000}, Preview: true,
			Policy: &contextdv1.Policy{Projection: &contextdv1.ProjectionPolicy{Policy: "harness_view"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		var context strings.Builder
		for _, m := range got.messages {
			context.Write(m.GetJson())
		}
		if n := got.header.GetBudget().GetProjectedTokens(); n > limit {
			t.Errorf("%s: the harness begins with %d tokens", name, n)
		}
		for text, want := range map[string]bool{
			"Read everything.": true, "I have read everything.": true, "src/f0.go": true,
			"line of file 59 ": true, "line of file 0 ": false,
		} {
			if strings.Contains(context.String(), text) != want {
				t.Errorf("%s: that the resumed context holds %q should be %v", name, text, want)
			}
		}
	}
	if got, err := a.ListProjections(t.Context(), &contextdv1.ListProjectionsRequest{SessionId: "long"}); err != nil || len(got.GetProjections()) != 0 {
		t.Errorf("an export recorded %v, %v", got, err)
	}
	for _, e := range a.read(t, "long") {
		if e.GetCompaction() != nil {
			t.Error("an export changed the log")
		}
	}
}

func onlyCompaction(t *testing.T, events []*contextdv1.Event) *contextdv1.Compaction {
	t.Helper()
	var found *contextdv1.Compaction
	for i, e := range events {
		if c := e.GetCompaction(); c != nil {
			if found != nil {
				t.Error("there are two compactions")
			}
			found = c
			for _, later := range events[i:] {
				if later.GetMessage() != nil {
					t.Error("a message comes after the compaction")
				}
			}
		}
	}
	if found == nil {
		t.Fatal("there is no compaction")
	}
	return found
}

// TestExportAsCompactedWithRoom: where everything fits, the file is the same as
// without, and the report says so.
func TestExportAsCompactedWithRoom(t *testing.T) {
	a := serve(t, memlog.New())
	if _, err := a.importInto(t, "s", longTranscript(10)); err != nil {
		t.Fatal(err)
	}
	plain, _, err := a.export(t, &contextdv1.ExportTranscriptRequest{SessionId: "s", Harness: "claude"})
	if err != nil {
		t.Fatal(err)
	}
	got, report, err := a.export(t, &contextdv1.ExportTranscriptRequest{
		SessionId: "s", Harness: "claude", AsCompacted: true, Budget: &contextdv1.Budget{MaxTokens: 100_000},
	})
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(plain) {
		t.Error("the file is another")
	}
	if report.GetCompactions() != 0 || len(report.GetWarnings()) == 0 || !strings.Contains(report.GetWarnings()[0], "nothing was collapsed") {
		t.Errorf("reported %v", report)
	}
}
