package explain_test

import (
	"context"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/budget/bpe"
	"github.com/contextd/contextd/internal/explain"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/render"
)

// TestExplainWhatAPolicyTook looks for texts in a view in which a policy dropped one group and redacted a
// result of another.
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
	conv := reduce.NewConversation(budget.NewGauge(encoding))
	for e, err := range store.Read(context.Background(), "s", 1, 0) {
		if err != nil {
			t.Fatal(err)
		}
		conv.Append(e)
	}
	edit := reduce.NewView(conv.Gauge(), conv.Groups()).Editor()
	if !edit.Drop(1, "repair", "it failed") || !edit.Replace(2, &conv.Groups()[2].Calls[0], reduce.Redacted, "[gone: ctx:5.0]", "reach", "nothing refers to it") {
		t.Fatal("the view was not changed")
	}
	c := explain.Context{SessionID: "s", Record: records.Projection{AsOf: 5}, Conversation: conv, Result: reduce.Result{View: edit.View()}, Head: 5}
	var fragments []render.Fragment
	for i := range c.Result.View.Len() {
		for _, m := range render.GroupMessages(c.Result.View, i) {
			fragments = append(fragments, render.Formats()[0].Fragments(m)...)
		}
	}
	c.Messages = render.Formats()[0].Join(fragments)
	for text, want := range map[string]struct {
		seen      bool
		sightings []explain.Sighting
	}{
		"dropped_said":  {false, []explain.Sighting{{Seq: 2, Shown: explain.ShownOmitted, Reason: "repair: it failed", Pointer: "ctx:2.0"}}},
		"dropped_body":  {false, []explain.Sighting{{Seq: 3, Shown: explain.ShownOmitted, Reason: "repair: it failed", Pointer: "ctx:3.0"}}},
		"dropped.go":    {true, []explain.Sighting{{Shown: explain.ShownLedger, Seen: true}, {Seq: 2, Block: 1, Shown: explain.ShownOmitted, Reason: "repair: it failed", Pointer: "ctx:2.1"}}},
		"ctx:3.0":       {false, []explain.Sighting{{Shown: explain.ShownLedger, Reason: "it names the pointer"}, {Seq: 3, Shown: explain.ShownOmitted, Reason: "repair: it failed", Pointer: "ctx:3.0"}}},
		"redacted_body": {false, []explain.Sighting{{Seq: 5, Shown: explain.ShownStubbed, Reason: "reach: nothing refers to it", Pointer: "ctx:5.0"}}},
		"redacted.go":   {true, []explain.Sighting{{Seq: 4, Block: 1, Shown: explain.ShownVerbatim, Seen: true, Pointer: "ctx:4.1"}}},
		"gone":          {true, []explain.Sighting{{Seq: 5, Shown: explain.ShownStubbed, Seen: true, Reason: "reach: nothing refers to it", Pointer: "ctx:5.0"}}},
	} {
		seen, sightings, err := explain.Find(context.Background(), store, c, text)
		if err != nil {
			t.Fatal(err)
		}
		if seen != want.seen || len(sightings) != len(want.sightings) {
			t.Errorf("%q: %v %+v, want %v %+v", text, seen, sightings, want.seen, want.sightings)
			continue
		}
		for i := range sightings {
			if sightings[i] != want.sightings[i] {
				t.Errorf("%q is at %+v, want %+v", text, sightings[i], want.sightings[i])
			}
		}
	}
}
