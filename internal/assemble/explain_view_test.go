package assemble_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/assemble"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/records"
)

// TestExplainBehindABoundary explains events that a harness's view skips, and compactions before its
// boundary or that it ignores.
func TestExplainBehindABoundary(t *testing.T) {
	const opaque = `{"capabilityType":22,"note":"opaque_note"}`
	call := func(id, callID string) eventlog.Event {
		return eventlog.Event{ID: id, Body: &eventlog.Message{Role: eventlog.RoleAssistant, Blocks: []eventlog.Block{
			eventlog.Text{Text: id + "_said"}, eventlog.ToolCall{CallID: callID, Name: "read", Arguments: `{"path":"` + id + `.go"}`},
		}}}
	}
	result := func(id, callID string) eventlog.Event {
		return eventlog.Event{ID: id, Body: &eventlog.Message{Role: eventlog.RoleTool, Blocks: []eventlog.Block{
			eventlog.ToolResult{CallID: callID, Content: []eventlog.Block{eventlog.Text{Text: id + "_body"}}},
		}}}
	}
	pinned := text("pinned", eventlog.RoleUser, "pinned_said")
	pinned.Body.(*eventlog.Message).Pinned = true
	log := []eventlog.Event{
		text("prompt", eventlog.RoleSystem, "You code, prompt_said."), // 1
		text("one", eventlog.RoleUser, "one_said"),
		{ID: "note", Body: &eventlog.Reminder{Body: "Mind the old_gate."}},
		boundary("c", eventlog.Compaction{Summary: "earlier_summary", NativeJSON: `{"native":"earlier_native"}`}),
		call("skipped", "k1"), // 5
		result("kept_result", "k1"),
		call("kept_call", "k2"),
		result("skipped_result", "k2"),
		pinned,
		boundary("d", eventlog.Compaction{Summary: "later_summary", NativeJSON: `{"native":"later_native"}`, KeptEventIDs: []string{"kept_result", "kept_call"}}), // 10
		call("open", "k3"),
		boundary("e", eventlog.Compaction{NativeJSON: opaque}),
		text("tail", eventlog.RoleUser, "tail_said"), // 13
	}
	const behind = "the harness dropped it with its compaction at event 10"
	onBothStores(t, func(t *testing.T, store eventlog.Store, _ func() eventlog.Store) {
		engine := newEngine(t, store)
		push(t, store, "s", log...)
		view, whole := mustAssemble(t, engine, harnessRequest()), mustAssemble(t, engine, request())
		record(t, engine, records.Call{ProjectionID: view.Projection.ID})
		record(t, engine, records.Call{ProjectionID: whole.Projection.ID})
		// A later boundary changes nothing of what was sent.
		push(t, store, "s", boundary("f", eventlog.Compaction{Summary: "last_summary"}), text("after", eventlog.RoleUser, "after_said"))
		record(t, engine, records.Call{ProjectionID: mustAssemble(t, engine, harnessRequest()).Projection.ID})
		for name, want := range map[string]struct {
			call   uint32
			text   string
			seen   bool
			places []string
			reason string // of the last place
		}{
			"skipped":                        {1, "one_said", false, []string{"2.0 omitted seen=false ctx:2.0"}, behind},
			"a pointer to it":                {1, "ctx:2.0", false, []string{"2.0 omitted seen=false ctx:2.0"}, behind},
			"a skipped call's path":          {1, "skipped.go", false, []string{"5.1 omitted seen=false ctx:5.1"}, behind},
			"a skipped result":               {1, "skipped_result_body", false, []string{"8.0 omitted seen=false ctx:8.0"}, behind},
			"what replaces it":               {1, "interrupted", true, []string{"7.1 verbatim seen=true ctx:7.1", "11.1 verbatim seen=true ctx:11.1"}, "contextd added it"},
			"kept":                           {1, "kept_call_said", true, []string{"7.0 verbatim seen=true ctx:7.0"}, ""},
			"kept without its call":          {1, "kept_result_body", false, []string{"6.0 omitted seen=false ctx:6.0"}, "the harness dropped the call that it answers with its compaction at event 10"},
			"pinned":                         {1, "pinned_said", true, []string{"9.0 verbatim seen=true ctx:9.0"}, ""},
			"the prompt":                     {1, "prompt_said", true, []string{"1.0 verbatim seen=true ctx:1.0"}, ""},
			"a reminder before it":           {1, "old_gate", true, []string{"3.0 reminder seen=true "}, ""},
			"the boundary":                   {1, "later_summary", true, []string{"10.0 verbatim seen=true ctx:10.0"}, ""},
			"a pointer to it in force":       {1, "ctx:10.0", true, []string{"10.0 verbatim seen=true ctx:10.0"}, ""},
			"what its record says besides":   {1, "later_native", false, []string{"10.0 omitted seen=false "}, "only messages and reminders are sent"},
			"a boundary before it":           {1, "earlier_summary", false, []string{"4.0 omitted seen=false ctx:4.0"}, behind},
			"a pointer to one before it":     {1, "ctx:4.0", false, []string{"4.0 omitted seen=false ctx:4.0"}, behind},
			"one that nobody can read":       {1, "opaque_note", false, []string{"12.0 omitted seen=false "}, "only messages and reminders are sent"},
			"behind it":                      {1, "tail_said", true, []string{"13.0 verbatim seen=true ctx:13.0"}, ""},
			"a boundary after the call":      {1, "last_summary", false, []string{"14.0 later seen=false ctx:14.0"}, "the context was made of the log up to event 13"},
			"skipped, in the whole log":      {2, "one_said", true, []string{"2.0 verbatim seen=true ctx:2.0"}, ""},
			"the boundary, in the whole log": {2, "later_summary", false, []string{"10.0 omitted seen=false ctx:10.0"}, "only messages and reminders are sent"},
			"a pointer to that":              {2, "ctx:10.0", false, []string{"10.0 omitted seen=false ctx:10.0"}, "only messages and reminders are sent"},
			"behind the next boundary":       {3, "tail_said", false, []string{"13.0 omitted seen=false ctx:13.0"}, "the harness dropped it with its compaction at event 14"},
			"the boundary that was in force": {3, "later_summary", false, []string{"10.0 omitted seen=false ctx:10.0"}, "the harness dropped it with its compaction at event 14"},
			"the next boundary":              {3, "last_summary", true, []string{"14.0 verbatim seen=true ctx:14.0"}, ""},
		} {
			got, err := engine.Explain(t.Context(), "s", assemble.Asked{Call: want.call}, want.text, assemble.Request{})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			var places []string
			reason := ""
			for _, sighting := range got.Sightings {
				places, reason = append(places, says(sighting)), sighting.Reason
			}
			if got.Seen != want.seen || !slices.Equal(places, want.places) || reason != want.reason {
				t.Errorf("%s: %q was seen: %v, at %q (%s); want %v, at %q (%s)", name, want.text, got.Seen, places, reason, want.seen, want.places, want.reason)
			}
		}
		for _, pointer := range []string{"ctx:10.1", "ctx:12.0", "ctx:3.0"} {
			if got, err := engine.Explain(t.Context(), "s", assemble.Asked{Call: 1}, pointer, assemble.Request{}); err == nil || !strings.Contains(fmt.Sprint(err), pointer) {
				t.Errorf("%s names nothing: %+v, %v", pointer, got.Sightings, err)
			}
		}
	})
}
