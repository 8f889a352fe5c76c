package wire_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// TestEventsRoundTrip sends every event that a log can hold over the wire. Where the API refuses one, faultOf
// must find a reason too.
func TestEventsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, e := range logtest.GenLog(1, 12).Draw(t, "log") {
			encoded, err := proto.Marshal(wire.EventToProto(e))
			if err != nil {
				t.Fatalf("marshal: %v", err)
			}
			var received contextdv1.Event
			if err := proto.Unmarshal(encoded, &received); err != nil {
				t.Fatalf("unmarshal: %v", err)
			}
			if received.GetSeq() != uint64(e.Seq) || received.GetTurn() != e.Turn {
				t.Fatalf("seq %d turn %d became %d and %d", e.Seq, e.Turn, received.GetSeq(), received.GetTurn())
			}
			got, err := wire.EventToDomain(&received)
			if fault := faultOf(e); fault != "" {
				var invalid *eventlog.InvalidError
				if !errors.As(err, &invalid) {
					t.Fatalf("%s was accepted", fault)
				}
				continue
			}
			if err != nil {
				t.Fatalf("refused: %v", err)
			}
			want := e
			want.Seq, want.Turn, want.Tokens = 0, 0, eventlog.TokenCounts{}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateApproxTime(0)); diff != "" {
				t.Fatalf("changed on the wire (-sent +received):\n%s", diff)
			}
			if eventlog.Digest(want) != eventlog.Digest(got) {
				t.Fatal("has another identity on the other side")
			}
		}
	})
}

// faultOf is why the API must refuse an event of a log; empty if it must not.
func faultOf(e eventlog.Event) string {
	names, texts, written := []string{e.ID}, []string{}, []string{}
	for k, v := range e.Labels {
		names = append(names, k, v)
	}
	provider := true
	var walk func(all []eventlog.Block)
	walk = func(all []eventlog.Block) {
		for _, b := range all {
			switch b := b.(type) {
			case eventlog.ToolCall:
				names, written = append(names, b.CallID, b.Name), append(written, b.Arguments)
			case eventlog.ToolResult:
				names = append(names, b.CallID, b.ToolName)
				walk(b.Content)
			case eventlog.Media:
				names = append(names, b.MIMEType, b.URI)
			case eventlog.ProviderBlock:
				names, texts = append(names, b.Provider), append(texts, b.JSON)
				provider = provider && b.JSON != ""
			}
		}
	}
	switch b := e.Body.(type) {
	case *eventlog.Message:
		names = append(names, b.GroupID, b.Model)
		walk(b.Blocks)
	case *eventlog.Reminder:
		names = append(append(names, b.DedupeKey, b.Source), b.Tags...)
	case *eventlog.Compaction:
		names, texts = append(append(names, b.Mode, b.Strategy), b.KeptEventIDs...), append(texts, b.NativeJSON)
	case *eventlog.Custom:
		names, texts = append(names, b.Type), append(texts, b.JSON)
	}
	switch {
	case !provider:
		return "a provider block without JSON"
	case strings.Contains(strings.Join(names, "|"), "\x00"):
		return "a NUL in a name"
	case !utf8.ValidString(strings.Join(written, "|")): // two invalid texts may form a valid one when joined
		return "arguments that are no text"
	}
	for _, text := range texts {
		if text != "" && (!utf8.ValidString(text) || !json.Valid([]byte(text))) {
			return "a field that is not JSON: " + text
		}
	}
	return ""
}

func messageOf(blocks ...*contextdv1.Block) *contextdv1.Event {
	return &contextdv1.Event{Kind: &contextdv1.Event_Message{Message: &contextdv1.Message{
		Role: contextdv1.Role_ROLE_ASSISTANT, Blocks: blocks,
	}}}
}

func TestRefusedFields(t *testing.T) {
	call := func(id, name, arguments string) *contextdv1.Block {
		return &contextdv1.Block{Kind: &contextdv1.Block_ToolCall{ToolCall: &contextdv1.ToolCall{CallId: id, Name: name, ArgumentsJson: []byte(arguments)}}}
	}
	result := func(content ...*contextdv1.Block) *contextdv1.Block {
		return &contextdv1.Block{Kind: &contextdv1.Block_ToolResult{ToolResult: &contextdv1.ToolResult{CallId: "c", Content: content}}}
	}
	provider := func(json string) *contextdv1.Block {
		return &contextdv1.Block{Kind: &contextdv1.Block_Provider{Provider: &contextdv1.ProviderBlock{Provider: "p", Json: []byte(json)}}}
	}
	tests := map[string]struct {
		event *contextdv1.Event
		field string
	}{
		"no kind":              {&contextdv1.Event{}, "events[0].kind"},
		"a block without kind": {messageOf(&contextdv1.Block{}), "events[0].message.blocks[0].kind"},
		"arguments in latin1":  {messageOf(call("c", "n", "{}"), call("d", "n", "\"\xe9\"")), "events[0].message.blocks[1].tool_call.arguments_json"},
		"NUL in call_id":       {messageOf(call("c\x00", "n", "")), "events[0].message.blocks[0].tool_call.call_id"},
		"NUL in name":          {messageOf(call("c", "n\x00", "")), "events[0].message.blocks[0].tool_call.name"},
		"NUL in event_id":      {&contextdv1.Event{EventId: "a\x00"}, "events[0].event_id"},
		"NUL in a label":       {&contextdv1.Event{Labels: map[string]string{"a": "\x00"}}, `events[0].labels["a"]`},
		"provider block empty": {messageOf(provider("")), "events[0].message.blocks[0].provider.json"},
		"provider block no JSON within a result": {
			messageOf(result(provider("{}"), provider("nope"))),
			"events[0].message.blocks[0].tool_result.content[1].provider.json",
		},
		"a result within a result": {messageOf(result(result())), "events[0].message.blocks[0].tool_result.content[0]"},
		"a time that is none":      {&contextdv1.Event{Time: &timestamppb.Timestamp{Nanos: -1}}, "events[0].time"},
		"custom JSON": {
			&contextdv1.Event{Kind: &contextdv1.Event_Custom{Custom: &contextdv1.CustomEvent{Type: "t", Json: []byte("{")}}},
			"events[0].custom.json",
		},
		"native JSON": {
			&contextdv1.Event{Kind: &contextdv1.Event_Compaction{Compaction: &contextdv1.Compaction{NativeJson: []byte("{")}}},
			"events[0].compaction.native_json",
		},
		"NUL in a tag": {
			&contextdv1.Event{Kind: &contextdv1.Event_Reminder{Reminder: &contextdv1.Reminder{Body: "b", Tags: []string{"", "\x00"}}}},
			"events[0].reminder.tags[1]",
		},
		"a role that is none": {
			&contextdv1.Event{Kind: &contextdv1.Event_Message{Message: &contextdv1.Message{Role: 99}}},
			"events[0].message.role",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := wire.EventsToDomain([]*contextdv1.Event{test.event})
			var invalid *eventlog.InvalidError
			if !errors.As(err, &invalid) || invalid.Field != test.field {
				t.Errorf("got %v; want an error that names %s", err, test.field)
			}
		})
	}
}

// TestCarriedAsItCame checks that arguments keep their bytes, whether they are JSON or not.
func TestCarriedAsItCame(t *testing.T) {
	for _, arguments := range []string{
		"{ \"b\":1.0, \"a\" : 9007199254740993, \"x\":\"\\u00e9\\/\" , \"e\":1e400}",
		`{"a":`, `{} {}`, "plain words\x00", " ", "\ufeff{}",
	} {
		got, err := wire.EventToDomain(messageOf(&contextdv1.Block{Kind: &contextdv1.Block_ToolCall{ToolCall: &contextdv1.ToolCall{
			CallId: "c", Name: "n", ArgumentsJson: []byte(arguments),
		}}}))
		if err != nil {
			t.Fatal(err)
		}
		call := got.Body.(*eventlog.Message).Blocks[0].(eventlog.ToolCall)
		if call.Arguments != arguments {
			t.Errorf("%q became %q", arguments, call.Arguments)
		}
	}
}

func TestTimes(t *testing.T) {
	if e, err := wire.EventToDomain(messageOf()); err != nil || !e.Time.IsZero() {
		t.Errorf("an absent time became %v, %v", e.Time, err)
	}
	if got := wire.EventToProto(eventlog.Event{}).GetTime(); got != nil {
		t.Errorf("no time became %v", got)
	}
	at := time.Date(2026, 2, 3, 4, 5, 6, 789, time.FixedZone("", 3600))
	if got := wire.EventToProto(eventlog.Event{Time: at}).GetTime().AsTime(); !got.Equal(at) || got.Location() != time.UTC {
		t.Errorf("%v became %v", at, got)
	}
}

func FuzzEventToDomain(f *testing.F) {
	for _, e := range logtest.Kinds() {
		b, err := proto.Marshal(wire.EventToProto(e))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m contextdv1.Event
		if proto.Unmarshal(b, &m) != nil {
			return
		}
		e, err := wire.EventToDomain(&m)
		if err != nil {
			return
		}
		again, err := wire.EventToDomain(wire.EventToProto(e))
		if err != nil {
			t.Fatalf("accepted once, then refused: %v", err)
		}
		if eventlog.Digest(e) != eventlog.Digest(again) {
			t.Fatal("another event after a round trip")
		}
	})
}
