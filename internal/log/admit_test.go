package log_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
)

func message(role eventlog.Role, group string, blocks ...eventlog.Block) eventlog.Event {
	return eventlog.Event{ID: "id", Body: &eventlog.Message{Role: role, GroupID: group, Blocks: blocks}}
}

func call(id string) eventlog.ToolCall { return eventlog.ToolCall{CallID: id, Name: "tool"} }

func result(id string, content ...eventlog.Block) eventlog.ToolResult {
	return eventlog.ToolResult{CallID: id, Content: content}
}

func TestAdmit(t *testing.T) {
	const (
		system, user, assistant, tool = eventlog.RoleSystem, eventlog.RoleUser, eventlog.RoleAssistant, eventlog.RoleTool
	)
	text := eventlog.Text{Text: "t"}
	body := func(b eventlog.Body) []eventlog.Event { return []eventlog.Event{{ID: "id", Body: b}} }
	cases := []struct {
		name   string
		events []eventlog.Event
		// field and reason are part of the error; none if field is empty.
		field, reason string
		turns         uint32
		open          []string
	}{
		{name: "nothing"},
		{name: "plain messages", events: []eventlog.Event{message(system, "", text), message(user, "", text)}},
		{name: "an assistant's message is a turn", events: []eventlog.Event{message(assistant, "", text), message(assistant, "", text)}, turns: 2},
		{
			name:   "parts of a group are one turn",
			events: []eventlog.Event{message(assistant, "g", text), message(user, "", text), message(assistant, "g", text), message(assistant, "h", text)}, turns: 2,
		},
		{
			name:   "a group that returns is a new turn",
			events: []eventlog.Event{message(assistant, "g", text), message(assistant, "h", text), message(assistant, "g", text)}, turns: 3,
		},
		{name: "calls stay open", events: []eventlog.Event{message(assistant, "", text, call("a"), call("b"))}, turns: 1, open: []string{"a", "b"}},
		{
			name:   "results answer in any order and number",
			events: []eventlog.Event{message(assistant, "", call("a"), call("b"), call("c")), message(tool, "", result("c"), result("a"))}, turns: 1, open: []string{"b"},
		},
		{name: "a user may answer", events: []eventlog.Event{message(assistant, "", call("a")), message(user, "", text, result("a"), text)}, turns: 1},
		{
			name:   "a call_id is used again once it is answered",
			events: []eventlog.Event{message(assistant, "g", call("a")), message(tool, "", result("a")), message(assistant, "g", call("a"))}, turns: 1, open: []string{"a"},
		},
		{
			name:   "a call_id is used again in a later message, and the first is interrupted",
			events: []eventlog.Event{message(assistant, "", call("a"), call("b")), message(assistant, "", call("a")), message(tool, "", result("a"))}, turns: 2, open: []string{"b"},
		},
		{
			name: "a call_id stands twice in a message", events: []eventlog.Event{message(assistant, "", call("a"), call("a"))},
			field: "events[0].message.blocks[1].tool_call.call_id", reason: `"a" is used twice`,
		},
		{
			name: "a call_id stands twice in a group", events: []eventlog.Event{message(assistant, "g", call("a")), message(assistant, "g", call("a"))},
			field: "events[1].message.blocks[0].tool_call.call_id", reason: `"a" is used twice`,
		},
		{
			name: "a result before its call", events: []eventlog.Event{message(tool, "", result("a")), message(assistant, "", call("a"))},
			field: "events[0].message.blocks[0].tool_result.call_id", reason: `"a" answers no open tool call`,
		},
		{
			name: "a second result", events: []eventlog.Event{message(assistant, "", call("a")), message(tool, "", result("a"), result("a"))},
			field: "events[1].message.blocks[1].tool_result.call_id", reason: `"a" answers no open tool call`,
		},
		{name: "no kind", events: body(nil), field: "events[0].kind", reason: "must be set"},
		{name: "no message", events: body((*eventlog.Message)(nil)), field: "events[0].kind"},
		{name: "no reminder", events: body((*eventlog.Reminder)(nil)), field: "events[0].kind"},
		{name: "no compaction", events: body((*eventlog.Compaction)(nil)), field: "events[0].kind"},
		{name: "no custom event", events: body((*eventlog.Custom)(nil)), field: "events[0].kind"},
		{name: "no role", events: []eventlog.Event{message(0, "", text)}, field: "events[0].message.role"},
		{name: "a role out of range", events: []eventlog.Event{message(9, "", text)}, field: "events[0].message.role"},
		{name: "no blocks", events: []eventlog.Event{message(user, "")}, field: "events[0].message.blocks"},
		{name: "a block without kind", events: []eventlog.Event{message(user, "", text, nil)}, field: "events[0].message.blocks[1].kind"},
		{name: "a call by a user", events: []eventlog.Event{message(user, "", call("a"))}, field: "events[0].message.blocks[0].tool_call"},
		{name: "a call by a tool", events: []eventlog.Event{message(tool, "", call("a"))}, field: "events[0].message.blocks[0].tool_call"},
		{
			name: "a result by an assistant", events: []eventlog.Event{message(assistant, "", call("a")), message(assistant, "", result("a"))},
			field: "events[1].message.blocks[0].tool_result",
		},
		{name: "text by a tool", events: []eventlog.Event{message(tool, "", text)}, field: "events[0].message.blocks[0].tool_result", reason: "results alone"},
		{name: "no call_id", events: []eventlog.Event{message(assistant, "", call(""))}, field: "events[0].message.blocks[0].tool_call.call_id"},
		{
			name: "no name", events: []eventlog.Event{message(assistant, "", eventlog.ToolCall{CallID: "a"})},
			field: "events[0].message.blocks[0].tool_call.name",
		},
		{name: "no call_id in a result", events: []eventlog.Event{message(tool, "", result(""))}, field: "events[0].message.blocks[0].tool_result.call_id"},
		{
			name: "thinking in a result", events: []eventlog.Event{message(assistant, "", call("a")), message(tool, "", result("a", text, eventlog.Thinking{}))},
			field: "events[1].message.blocks[0].tool_result.content[1].kind",
		},
		{
			name: "a result in a result", events: []eventlog.Event{message(assistant, "", call("a")), message(tool, "", result("a", result("a")))},
			field: "events[1].message.blocks[0].tool_result.content[0].kind",
		},
		{name: "an empty reminder", events: body(&eventlog.Reminder{}), field: "events[0].reminder.body"},
		{name: "a reminder's hint out of range", events: body(&eventlog.Reminder{Body: "b", RoleHint: 5}), field: "events[0].reminder.role_hint"},
		{name: "a decision that decides nothing", events: body(&eventlog.Compaction{Decision: &eventlog.CompactionDecision{}}), field: "events[0].compaction.decision.through_seq"},
		{name: "a take-back that decides", events: body(&eventlog.Compaction{Decision: &eventlog.CompactionDecision{Undoes: 1, Through: 1}}), field: "events[0].compaction.decision.undoes_seq"},
		{name: "a record of no size", events: body(&eventlog.Compaction{Decision: &eventlog.CompactionDecision{Through: 1}}), field: "events[0].compaction.decision.digest_tokens"},
		{name: "late results where nothing was dropped", events: body(&eventlog.Compaction{Decision: &eventlog.CompactionDecision{Masked: []eventlog.Place{{Seq: 1}}, LateAfter: 1}}), field: "events[0].compaction.decision.late_after_seq"},
		{name: "kept where nothing left", events: body(&eventlog.Compaction{Decision: &eventlog.CompactionDecision{Masked: []eventlog.Place{{Seq: 1}}, Kept: []eventlog.Seq{1}}}), field: "events[0].compaction.decision.kept_seqs"},
		{name: "a summary without a text", events: body(&eventlog.Compaction{Decision: &eventlog.CompactionDecision{Through: 1, DigestTokens: 1, SummaryID: "s", SummaryThrough: 1}}), field: "events[0].compaction.decision.summary_id"},
		{name: "a summary of what did not leave", events: body(&eventlog.Compaction{Summary: "s", Decision: &eventlog.CompactionDecision{Through: 1, DigestTokens: 1, SummaryID: "s", SummaryThrough: 2}}), field: "events[0].compaction.decision.summary_through_seq"},
		{name: "a trigger out of range", events: body(&eventlog.Compaction{Trigger: 4}), field: "events[0].compaction.trigger"},
		{
			name: "too many calls", events: []eventlog.Event{message(assistant, "", slices.Repeat([]eventlog.Block{call("a")}, eventlog.MaxOpenCalls+1)...)},
			field: "events[0].message.blocks", reason: "1024",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			head, admitted, err := eventlog.Head{}.Admit(c.events)
			if c.field != "" {
				var invalid *eventlog.InvalidError
				if !errors.As(err, &invalid) || invalid.Field != c.field || !strings.Contains(invalid.Reason, c.reason) {
					t.Fatalf("got %v, want %s: … %s", err, c.field, c.reason)
				}
				if head.Seq != 0 || admitted != nil {
					t.Errorf("something was admitted: %v %v", head, admitted)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if head.Seq != eventlog.Seq(len(c.events)) || head.Turns != c.turns || !slices.Equal(openIDs(head), c.open) {
				t.Errorf("got head %+v, want %d turns and open %v", head, c.turns, c.open)
			}
		})
	}
}

func openIDs(h eventlog.Head) []string {
	var ids []string
	for _, o := range h.OpenCalls {
		ids = append(ids, o.CallID)
	}
	return ids
}

func TestTextIsUTF8(t *testing.T) {
	const bad = "\xff"
	one := func(b eventlog.Body) eventlog.Event { return eventlog.Event{ID: "id", Body: b} }
	withBlock := func(b eventlog.Block) eventlog.Event {
		role := eventlog.RoleAssistant
		if _, ok := b.(eventlog.ToolResult); ok {
			role = eventlog.RoleTool
		}
		return message(role, "", b)
	}
	for field, e := range map[string]eventlog.Event{
		"event_id":                                           {ID: bad, Body: &eventlog.Custom{}},
		"tokens.tokenizer":                                   {ID: "id", Body: &eventlog.Custom{}, Tokens: eventlog.TokenCounts{Tokenizer: bad}},
		`labels["k"]`:                                        {ID: "id", Body: &eventlog.Custom{}, Labels: map[string]string{"a": "", "k": bad}},
		`labels["\xff"]`:                                     {ID: "id", Body: &eventlog.Custom{}, Labels: map[string]string{bad: ""}},
		"message.group_id":                                   message(eventlog.RoleUser, bad, eventlog.Text{}),
		"message.model":                                      one(&eventlog.Message{Role: eventlog.RoleUser, Model: bad, Blocks: []eventlog.Block{eventlog.Text{}}}),
		"message.blocks[0].text.text":                        withBlock(eventlog.Text{Text: bad}),
		"message.blocks[0].thinking.text":                    withBlock(eventlog.Thinking{Text: bad}),
		"message.blocks[0].thinking.signature":               withBlock(eventlog.Thinking{Signature: bad}),
		"message.blocks[0].thinking.encrypted_content":       withBlock(eventlog.Thinking{EncryptedContent: bad}),
		"message.blocks[0].tool_call.call_id":                withBlock(eventlog.ToolCall{CallID: bad, Name: "n"}),
		"message.blocks[0].tool_call.name":                   withBlock(eventlog.ToolCall{CallID: "c", Name: bad}),
		"message.blocks[0].tool_result.call_id":              withBlock(eventlog.ToolResult{CallID: bad}),
		"message.blocks[0].tool_result.tool_name":            withBlock(eventlog.ToolResult{CallID: "c", ToolName: bad}),
		"message.blocks[0].tool_result.content[0].text.text": withBlock(eventlog.ToolResult{CallID: "c", Content: []eventlog.Block{eventlog.Text{Text: bad}}}),
		"message.blocks[0].media.mime_type":                  withBlock(eventlog.Media{MIMEType: bad}),
		"message.blocks[0].media.uri":                        withBlock(eventlog.Media{URI: bad}),
		"message.blocks[0].provider.provider":                withBlock(eventlog.ProviderBlock{Provider: bad}),
		"reminder.body":                                      one(&eventlog.Reminder{Body: bad}),
		"reminder.dedupe_key":                                one(&eventlog.Reminder{Body: "b", DedupeKey: bad}),
		"reminder.source":                                    one(&eventlog.Reminder{Body: "b", Source: bad}),
		"reminder.tags[1]":                                   one(&eventlog.Reminder{Body: "b", Tags: []string{"", bad}}),
		"compaction.summary":                                 one(&eventlog.Compaction{Summary: bad}),
		"compaction.mode":                                    one(&eventlog.Compaction{Mode: bad}),
		"compaction.strategy":                                one(&eventlog.Compaction{Strategy: bad}),
		"compaction.kept_event_ids[0]":                       one(&eventlog.Compaction{KeptEventIDs: []string{bad}}),
		"custom.type":                                        one(&eventlog.Custom{Type: bad}),
	} {
		_, _, err := eventlog.Head{}.Admit([]eventlog.Event{e})
		var invalid *eventlog.InvalidError
		if !errors.As(err, &invalid) || invalid.Field != "events[0]."+field || !strings.Contains(invalid.Reason, "UTF-8") {
			t.Errorf("%s: got %v", field, err)
		}
	}
	// JSON and binary data may be anything.
	for _, e := range []eventlog.Event{
		withBlock(eventlog.Thinking{RedactedData: bad}),
		withBlock(eventlog.ToolCall{CallID: "c", Name: "n", Arguments: bad}),
		withBlock(eventlog.Media{Data: bad}),
		withBlock(eventlog.ProviderBlock{JSON: bad}),
		one(&eventlog.Compaction{NativeJSON: bad}),
		one(&eventlog.Custom{JSON: bad}),
	} {
		if _, _, err := (eventlog.Head{}).Admit([]eventlog.Event{e}); err != nil {
			t.Errorf("%+v: %v", e.Body, err)
		}
	}
}

func TestOldestOpenCallsAreForgotten(t *testing.T) {
	var h eventlog.Head
	var err error
	for i := range eventlog.MaxOpenCalls + 10 {
		if h, _, err = h.Admit([]eventlog.Event{message(eventlog.RoleAssistant, "", call(fmt.Sprint(i)))}); err != nil {
			t.Fatal(err)
		}
	}
	if len(h.OpenCalls) != eventlog.MaxOpenCalls || h.OpenCalls[0].CallID != "10" {
		t.Fatalf("%d calls are open from %q on", len(h.OpenCalls), h.OpenCalls[0].CallID)
	}
	if _, _, err := h.Admit([]eventlog.Event{message(eventlog.RoleTool, "", result("9"))}); err == nil {
		t.Error("a forgotten call was answered")
	}
	if _, _, err := h.Admit([]eventlog.Event{message(eventlog.RoleTool, "", result("10"))}); err != nil {
		t.Error(err)
	}
}

// TestChangesAreSmall has a batch make more calls than a log remembers. However many are open, each event's
// change holds only the call that it opens and the one that is forgotten for it.
func TestChangesAreSmall(t *testing.T) {
	const n = 10 * eventlog.MaxOpenCalls
	events := make([]eventlog.Event, n)
	for i := range events {
		events[i] = message(eventlog.RoleAssistant, "", call(fmt.Sprint(i)))
		events[i].ID = fmt.Sprint(i)
	}
	p, err := eventlog.Prepare(eventlog.Batch{Events: events})
	if err != nil {
		t.Fatal(err)
	}
	a, err := p.Admit(eventlog.Head{}, func(int) (eventlog.Known, bool, error) { return eventlog.Known{}, false, nil })
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	for _, f := range a.Fresh {
		told += len(f.Change.Opened) + len(f.Change.Closed)
	}
	if want := n + n - eventlog.MaxOpenCalls; told != want || len(a.Head.OpenCalls) != eventlog.MaxOpenCalls {
		t.Errorf("%d events tell of %d calls, want %d; %d are open after them", n, told, want, len(a.Head.OpenCalls))
	}
}

// oracle decides on events with the whole history available, one call at a time.
type oracle struct {
	calls []oracleCall // every call ever made
	group string
	turns uint32
}

type oracleCall struct {
	id, group string
	event     int
	closed    bool // answered, or given up because its id was used again
}

// admit reports whether the rules allow the message; if not, nothing changes.
func (o *oracle) admit(event int, m *eventlog.Message) bool {
	next := oracle{calls: slices.Clone(o.calls), group: o.group, turns: o.turns}
	if m.Role == eventlog.RoleAssistant {
		if m.GroupID == "" || m.GroupID != o.group {
			next.turns++
		}
		next.group = m.GroupID
	}
	for _, b := range m.Blocks {
		switch b := b.(type) {
		case eventlog.ToolCall:
			for i, c := range next.calls {
				if c.id != b.CallID || c.closed {
					continue
				}
				if c.event == event || (m.GroupID != "" && c.group == m.GroupID) {
					return false
				}
				next.calls[i].closed = true
			}
			next.calls = append(next.calls, oracleCall{id: b.CallID, group: m.GroupID, event: event})
		case eventlog.ToolResult:
			answered := false
			for i, c := range next.calls {
				if c.id == b.CallID && !c.closed {
					next.calls[i].closed, answered = true, true
				}
			}
			if !answered {
				return false
			}
		}
	}
	*o = next
	return true
}

func (o *oracle) open() []string {
	var ids []string
	for _, c := range o.calls {
		if !c.closed {
			ids = append(ids, c.id)
		}
	}
	return ids
}

func TestAdmitAgreesWithTheOracle(t *testing.T) {
	ids := rapid.SampledFrom([]string{"a", "b", "c"})
	anyMessage := rapid.Custom(func(t *rapid.T) *eventlog.Message {
		m := &eventlog.Message{GroupID: rapid.SampledFrom([]string{"", "g", "h"}).Draw(t, "group")}
		if rapid.Bool().Draw(t, "calls") {
			m.Role = eventlog.RoleAssistant
			for range rapid.IntRange(1, 3).Draw(t, "n") {
				m.Blocks = append(m.Blocks, call(ids.Draw(t, "call")))
			}
			return m
		}
		m.Role = rapid.SampledFrom([]eventlog.Role{eventlog.RoleTool, eventlog.RoleUser}).Draw(t, "role")
		for range rapid.IntRange(1, 3).Draw(t, "n") {
			m.Blocks = append(m.Blocks, result(ids.Draw(t, "result")))
		}
		return m
	})
	rapid.Check(t, func(t *rapid.T) {
		var h eventlog.Head
		var o oracle
		for range 30 {
			m := anyMessage.Draw(t, "message")
			before := openIDs(h)
			next, admitted, err := h.Admit([]eventlog.Event{{ID: "id", Body: m}})
			if ok := o.admit(int(h.Seq)+1, m); ok != (err == nil) {
				t.Fatalf("the oracle says %t, Admit %v", ok, err)
			}
			if !slices.Equal(openIDs(h), before) {
				t.Fatal("Admit changed the head it was called on")
			}
			if err != nil {
				continue
			}
			h = next
			if admitted[0].Turn != o.turns || admitted[0].Seq != h.Seq || !slices.Equal(openIDs(h), o.open()) {
				t.Fatalf("got turn %d and open %v, want %d and %v", admitted[0].Turn, openIDs(h), o.turns, o.open())
			}
		}
	})
}

// How events are cut into batches makes no difference.
func TestAdmitByBatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := logtest.GenLog(1, 20).Draw(t, "log")
		whole, all, err := eventlog.Head{}.Admit(events)
		if err != nil {
			t.Fatal(err)
		}
		var h eventlog.Head
		for rest, seen := events, 0; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "batch")
			next, admitted, err := h.Admit(rest[:n])
			if err != nil {
				t.Fatal(err)
			}
			if diff := logtest.Diff(all[seen:seen+n], admitted); diff != "" {
				t.Fatal(diff)
			}
			h, rest, seen = next, rest[n:], seen+n
		}
		if diff := logtest.Diff(whole, h); diff != "" {
			t.Fatal(diff)
		}
	})
}
