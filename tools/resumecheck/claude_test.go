package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/harness"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

// TestInterruptedText: for an open call, the writer for Claude Code writes the same result that contexts
// show.
func TestInterruptedText(t *testing.T) {
	said := func(id string, role eventlog.Role, b eventlog.Block) eventlog.Event {
		return eventlog.Event{ID: id, Body: &eventlog.Message{Role: role, Blocks: []eventlog.Block{b}}}
	}
	tr := harness.Transcript{Sessions: []harness.Session{{Events: []eventlog.Event{
		said("a", eventlog.RoleAssistant, eventlog.ToolCall{CallID: "c", Name: "ls", Arguments: "{}"}),
		said("u", eventlog.RoleUser, eventlog.Text{Text: "Go on."}),
	}}}}
	var file bytes.Buffer
	if _, err := harness.Write(&file, tr, "claude", harness.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(file.String(), reduce.InterruptedText) || !strings.HasPrefix(reduce.InterruptedText, interrupted) {
		t.Errorf("%q is not in\n%s", reduce.InterruptedText, file.String())
	}
}

// TestClaudeRevises: exactly the turns of a view that Claude Code does not send are removed.
func TestClaudeRevises(t *testing.T) {
	text := func(role, s string) Turn { return Turn{Role: role, Kind: Text, Body: s} }
	thinks := func(seal string, foreign bool) Turn {
		return Turn{Role: "assistant", Kind: Thinking, Body: "Hm.", Signature: seal, Foreign: foreign}
	}
	call := Turn{Role: "assistant", Kind: Call, ID: "1", Name: "ls"}
	open := Turn{Kind: Result, ID: "1", Failed: true, Interrupted: true, Body: reduce.InterruptedText}
	done := Turn{Kind: Result, ID: "1", Body: "a.go"}
	const (
		took = `{"type":"queue-operation","operation":"enqueue","content":"Stop."}
{"type":"queue-operation","operation":"remove"}
`
		attached = `{"type":"attachment","attachment":{"type":"queued_command","prompt":"Stop."}}
`
	)
	given := []byte(`{"contextd":{"interrupted":true}}`)
	for name, tc := range map[string]struct {
		view []Turn
		file []byte
		want string
	}{
		"all":              {[]Turn{text("user", "Hi"), thinks("s", false), call, done, text("assistant", "Done.")}, nil, "text thinking call result text"},
		"blank":            {[]Turn{text("assistant", "\n\n"), call, done}, nil, "call result"},
		"unsealed":         {[]Turn{thinks("", false), call, done}, nil, "call result"},
		"another model's":  {[]Turn{thinks("s", true), call, done}, nil, "call result"},
		"thinking alone":   {[]Turn{thinks("s", false), text("user", "Stop.")}, nil, "text"},
		"an open call":     {[]Turn{call, open, text("user", "Go on.")}, nil, "text"},
		"one given":        {[]Turn{call, open, text("user", "Go on.")}, given, "call result text"},
		"one at the end":   {[]Turn{text("user", "Hi"), call, open}, nil, "text call result"},
		"from the queue":   {[]Turn{text("user", "Hi"), call, done, text("user", "Stop.")}, []byte(took), "text call result"},
		"attached too":     {[]Turn{text("user", "Hi"), call, done, text("user", "Stop.")}, []byte(took + attached), "text call result text"},
		"begun, not ended": {[]Turn{{Role: "assistant", Kind: Other, Body: `{"type":"server_tool_use","id":"s"}`}, call, done}, nil, "call result"},
	} {
		var got []string
		for _, turn := range (claudeCLI{}).Revise(tc.view, Session{File: tc.file}) {
			got = append(got, string(turn.Kind))
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: %s", name, strings.Join(got, " "))
		}
	}
}
