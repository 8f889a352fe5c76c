package assemble

import (
	"context"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/budget/bpe"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/render"
)

// TestExplainWhatAPolicyTook looks for texts in a view of which a group was dropped by
// itself and a result redacted.
func TestExplainWhatAPolicyTook(t *testing.T) {
	store := memlog.New()
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	var events []eventlog.Event
	say := func(id string, role eventlog.Role, blocks ...eventlog.Block) {
		events = append(events, eventlog.Event{ID: id, Body: &eventlog.Message{Role: role, Blocks: blocks}})
	}
	say("user", eventlog.RoleUser, eventlog.Text{Text: "Begin."})
	for _, id := range []string{"dropped", "redacted"} {
		say(id+" call", eventlog.RoleAssistant, eventlog.Text{Text: id + "_said"}, eventlog.ToolCall{CallID: id, Name: "read", Arguments: `{"path":"` + id + `.go"}`})
		say(id+" result", eventlog.RoleTool, eventlog.ToolResult{CallID: id, Content: []eventlog.Block{eventlog.Text{Text: strings.Repeat(id+"_body and more\n", 60)}}})
	}
	commit, err := store.Append(context.Background(), "s", eventlog.Batch{Events: events})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := commit.Wait(context.Background()); err != nil {
		t.Fatal(err)
	}
	encoding, err := bpe.Open(budget.TokenizerO200K)
	if err != nil {
		t.Fatal(err)
	}
	engine := New(store, Options{CacheSessions: 1})
	s := &session{id: "s"}
	s.reset()
	conv, err := s.conversation(context.Background(), store, budget.NewAccountant(encoding), nil)
	if err != nil {
		t.Fatal(err)
	}
	edit := reduce.NewView(conv.Gauge(), conv.Groups()).Editor()
	if !edit.Drop(1, "repair", "it failed") || !edit.Replace(2, &conv.Groups()[2].Calls[0], reduce.Redacted, "[gone: ctx:5.0]", "reach", "nothing refers to it") {
		t.Fatal("the view was not changed")
	}
	p := projected{conv: conv, result: reduce.Result{View: edit.View()}}
	for text, want := range map[string]struct {
		seen      bool
		sightings []Sighting
	}{
		"dropped_said":  {false, []Sighting{{Seq: 2, Shown: ShownOmitted, Reason: "repair: it failed", Pointer: "ctx:2.0"}}},
		"dropped_body":  {false, []Sighting{{Seq: 3, Shown: ShownOmitted, Reason: "repair: it failed", Pointer: "ctx:3.0"}}},
		"dropped.go":    {true, []Sighting{{Shown: ShownLedger, Seen: true}, {Seq: 2, Block: 1, Shown: ShownOmitted, Reason: "repair: it failed", Pointer: "ctx:2.1"}}},
		"ctx:3.0":       {false, []Sighting{{Shown: ShownLedger, Reason: "it names the pointer"}, {Seq: 3, Shown: ShownOmitted, Reason: "repair: it failed", Pointer: "ctx:3.0"}}},
		"redacted_body": {false, []Sighting{{Seq: 5, Shown: ShownStubbed, Reason: "reach: nothing refers to it", Pointer: "ctx:5.0"}}},
		"redacted.go":   {true, []Sighting{{Seq: 4, Block: 1, Shown: ShownVerbatim, Seen: true, Pointer: "ctx:4.1"}}},
		"gone":          {true, []Sighting{{Seq: 5, Shown: ShownStubbed, Seen: true, Reason: "reach: nothing refers to it", Pointer: "ctx:5.0"}}},
	} {
		x := &explainer{engine: engine, sessionID: "s", record: records.Projection{AsOf: 5}, projected: p, search: newSearch(text), head: 5}
		seen, sightings, err := x.explain(context.Background(), s.encode(p, render.Formats()[0]).messages)
		if err != nil {
			t.Fatal(err)
		}
		if seen != want.seen || len(sightings) != len(want.sightings) {
			t.Errorf("%q: %v %+v, want %v %+v", text, seen, sightings, want.seen, want.sightings)
			continue
		}
		for i := range sightings {
			if sightings[i] != want.sightings[i] {
				t.Errorf("%q stands at %+v, want %+v", text, sightings[i], want.sightings[i])
			}
		}
	}
}
