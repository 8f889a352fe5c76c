package logtest

import (
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Say returns a user's message with one text, which is its id too.
func Say(id string) eventlog.Event { return Message(id, eventlog.RoleUser, eventlog.Text{Text: id}) }

// Message returns an event with a message.
func Message(id string, role eventlog.Role, blocks ...eventlog.Block) eventlog.Event {
	return eventlog.Event{ID: id, Time: epoch, Body: &eventlog.Message{Role: role, Blocks: blocks}}
}

// Call returns an assistant's message that makes tool calls.
func Call(id string, callIDs ...string) eventlog.Event {
	blocks := []eventlog.Block{eventlog.Text{Text: "calling"}}
	for _, c := range callIDs {
		blocks = append(blocks, eventlog.ToolCall{CallID: c, Name: "tool", Arguments: `{"call":"` + c + `"}`})
	}
	return Message(id, eventlog.RoleAssistant, blocks...)
}

// Answer returns a tool message with results.
func Answer(id string, callIDs ...string) eventlog.Event {
	var blocks []eventlog.Block
	for _, c := range callIDs {
		blocks = append(blocks, eventlog.ToolResult{CallID: c, Content: []eventlog.Block{eventlog.Text{Text: "result of " + c}}})
	}
	return Message(id, eventlog.RoleTool, blocks...)
}

// Kinds returns events that together have every kind of body and block and every field, with contents that a store
// may change by mistake.
func Kinds() []eventlog.Event {
	turns, before, after := uint32(0), uint64(0), uint64(1<<63)
	nasty := "\x00 \u2028 \U0001F600 </script>"
	raw := "\xff\x00\xfe not UTF-8"
	json := "{\"b\":1.0, \"a\":9007199254740993,\t\"a\":\"\\u0041\"}"
	calls := Message("calls", eventlog.RoleAssistant,
		eventlog.Thinking{Text: nasty, Signature: "sig", RedactedData: raw, EncryptedContent: "enc"},
		eventlog.Thinking{},
		eventlog.ToolCall{CallID: "c1", Name: "read", Arguments: json},
		eventlog.ToolCall{CallID: "c2", Name: "read", Arguments: raw},
		eventlog.ProviderBlock{Provider: "p", JSON: json},
	)
	calls.Body.(*eventlog.Message).GroupID = "group"
	calls.Body.(*eventlog.Message).Model = "model"
	calls.Body.(*eventlog.Message).Pinned = true
	results := Message("results", eventlog.RoleTool,
		eventlog.ToolResult{CallID: "c2", ToolName: "read", IsError: true, Content: []eventlog.Block{
			eventlog.Text{Text: nasty},
			eventlog.Media{MIMEType: "image/png", Data: raw, URI: "file:///x", Tokens: 1<<32 - 1},
			eventlog.ProviderBlock{Provider: "p", JSON: raw},
		}},
		eventlog.ToolResult{CallID: "c1"},
	)
	said := Message("said", eventlog.RoleSystem, eventlog.Text{}, eventlog.Text{Text: nasty}, eventlog.Media{URI: "u"})
	said.Labels = map[string]string{"": "empty", "k": nasty}
	said.Tokens = eventlog.TokenCounts{Tokenizer: "o200k_base", Blocks: []uint32{0, 7, 1<<32 - 1}, Estimated: true}
	event := func(id string, at time.Time, b eventlog.Body) eventlog.Event {
		return eventlog.Event{ID: id, Time: at, Body: b}
	}
	return []eventlog.Event{
		said,
		calls,
		results,
		event("reminder", time.Time{}, &eventlog.Reminder{
			Body: nasty, TTLTurns: &turns, DedupeKey: "key", PreserveOnCompact: true,
			RoleHint: eventlog.RoleSystem, Tags: []string{"a", ""}, Source: "src",
		}),
		event("short reminder", epoch, &eventlog.Reminder{Body: "b"}),
		event("compaction", time.Unix(-1, 999999999), &eventlog.Compaction{
			Trigger: eventlog.TriggerBudgetPressure, Summary: nasty, PreTokens: &before, PostTokens: &after,
			KeptEventIDs: []string{"said", "calls"}, Mode: "auto", Strategy: "mask", NativeJSON: json,
		}),
		event("decided", epoch, &eventlog.Compaction{Summary: nasty, Decision: &eventlog.CompactionDecision{
			Through: 3, DigestTokens: 1 << 40, Kept: []eventlog.Seq{1, 3}, Masked: []eventlog.Place{{Seq: 2}, {Seq: 300, Block: 2}},
			SummaryID: "s3-" + nasty, SummaryThrough: 2, SummaryBy: nasty,
		}}),
		event("masked", epoch, &eventlog.Compaction{Decision: &eventlog.CompactionDecision{Masked: []eventlog.Place{{}}}}),
		event("undone", epoch, &eventlog.Compaction{Decision: &eventlog.CompactionDecision{Undoes: 6}}),
		event("late results", epoch, &eventlog.Compaction{Decision: &eventlog.CompactionDecision{Through: 3, DigestTokens: 1, LateAfter: 5}}),
		event("empty compaction", epoch.In(time.FixedZone("away", 3600)), &eventlog.Compaction{}),
		event("custom", time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC), &eventlog.Custom{Type: "t", JSON: raw}),
		event("empty custom", time.Date(-100, 1, 1, 0, 0, 0, 0, time.UTC), &eventlog.Custom{}),
	}
}
