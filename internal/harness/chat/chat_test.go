package chat_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextd/contextd/internal/harness/chat"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

func read(t *testing.T, in string) transcript.Transcript {
	t.Helper()
	tr, err := chat.Harness.Read(strings.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// TestContainers: the same two messages are read from every kind of container.
func TestContainers(t *testing.T) {
	const hi, ho = `{"role":"user","content":"hi"}`, `{"role":"assistant","content":"ho"}`
	want := []eventlog.Event{
		{ID: "msg-1", Body: &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: "hi"}}}},
		{ID: "msg-2", Body: &eventlog.Message{Role: eventlog.RoleAssistant, Blocks: []eventlog.Block{eventlog.Text{Text: "ho"}}}},
	}
	tests := []struct {
		name, in string
		sessions int
	}{
		{"list", "[" + hi + "," + ho + "]", 1},
		{"lines", hi + "\n" + ho + "\n", 1},
		{"object", `{"messages":[` + hi + "," + ho + `],"x":1}`, 1},
		{"object with the list last", `{"x":{"messages":[]},"messages":[` + hi + "," + ho + `]}`, 1},
		{"history", `{"history":[` + hi + "," + ho + `]}`, 1},
		{"list of objects", `[{"traj":[` + hi + "," + ho + `]},{"traj":[` + hi + "," + ho + `]}]`, 2},
		{"lines of objects", `{"messages":[` + hi + "," + ho + `]}` + "\n" + `{"messages":[` + hi + "," + ho + `]}`, 2},
		{"conversations", `[{"conversations":[` + hi + "," + ho + `]},{"conversations":[` + hi + "," + ho + `]}]`, 2},
		{"conversations of ShareGPT", `{"id":"a","conversations":[{"from":"human","value":"hi"},{"from":"gpt","value":"ho"}]}`, 1},
		{"state of LangGraph", `{"values":{"files":{},"messages":[` + hi + "," + ho + `]},"next":[]}`, 1},
		{"state of LangGraph, and messages", `{"values":{"messages":[` + hi + "," + ho + `]},"messages":[` + hi + `]}`, 1},
		{"run of LangSmith", `{"inputs":{"messages":[` + hi + `]},"outputs":{"messages":[{"type":"human","content":"hi"},{"type":"ai","content":"ho"}]}}`, 1},
		{"export of ChatGPT", `[{"mapping":{"b":{"parent":"a","message":{"author":{"role":"assistant"},"content":{"parts":["ho"]}}},"a":{"message":{"author":{"role":"user"},"content":{"parts":["hi"]}}}},"current_node":"b"}]`, 1},
		{"cut off", "[" + hi + "," + ho + `,{"role":"user","con`, 1},
		{"cut off in an object", `{"messages":[` + hi + "," + ho + `,`, 1},
		{"spread over lines", "[\n" + hi + "\n,\n" + ho + "\n]", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if !chat.Harness.Detect(transcript.NewProbe([]byte(tt.in))) {
				t.Error("not recognised")
			}
			tr := read(t, tt.in)
			if len(tr.Sessions) != tt.sessions {
				t.Fatalf("%d sessions", len(tr.Sessions))
			}
			for _, s := range tr.Sessions {
				if diff := cmp.Diff(want, s.Events); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
			if strings.HasPrefix(tt.name, "cut off") && len(tr.Warnings) == 0 {
				t.Error("no warning that it is cut off")
			}
			if probe := transcript.NewProbe([]byte(tt.in)); !chat.Harness.Detect(probe) {
				t.Error("not recognised")
			}
		})
	}
}

func TestSystemPromptFirst(t *testing.T) {
	tr := read(t, `{"messages":[{"role":"user","content":"hi"}],"system":"be kind"}`)
	m, ok := tr.Sessions[0].Events[0].Body.(*eventlog.Message)
	if !ok || m.Role != eventlog.RoleSystem {
		t.Errorf("the first event is %+v", tr.Sessions[0].Events[0])
	}
}

func TestTimes(t *testing.T) {
	for in, want := range map[string]time.Time{
		`"2025-08-01T15:32:42.655874"`: time.Date(2025, 8, 1, 15, 32, 42, 655_874_000, time.UTC),
		`"2025-08-01T17:32:42+02:00"`:  time.Date(2025, 8, 1, 15, 32, 42, 0, time.UTC),
		`1776073883.0042357`:           time.Date(2026, 4, 13, 9, 51, 23, 4_236_000, time.UTC),
		`1776073883`:                   time.Date(2026, 4, 13, 9, 51, 23, 0, time.UTC),
		`1776073883004`:                time.Date(2026, 4, 13, 9, 51, 23, 4_000_000, time.UTC),
		`"soon"`:                       {}, `null`: {}, `-1`: {}, `1e300`: {}, `{}`: {},
	} {
		tr := read(t, `[{"role":"user","content":"hi","timestamp":`+in+`}]`)
		if got := tr.Sessions[0].Events[0].Time; !got.Equal(want) {
			t.Errorf("%s is read as %v, want %v", in, got, want)
		}
	}
}

// TestSWEAgentActions: in the older style the next user message is an action's result, unless the session
// ends or the model writes before it.
func TestSWEAgentActions(t *testing.T) {
	tr := read(t, `{"history":[
		{"role":"assistant","content":"Go.\n<command>\nls\n</command>","thought":"Go.","action":"ls"},
		{"role":"assistant","content":"Other text","thought":"Go.","action":"pwd"},
		{"role":"user","content":"/src"},
		{"role":"user","content":"More"},
		{"role":"assistant","content":"End","action":""},
		{"role":"user","content":"Thanks"}]}`)
	var got []string
	for _, e := range tr.Sessions[0].Events {
		m, _ := e.Body.(*eventlog.Message)
		line := m.Role.String()
		for _, b := range m.Blocks {
			switch b := b.(type) {
			case eventlog.Text:
				line += " " + b.Text
			case eventlog.ToolCall:
				line += " " + b.CallID + b.Arguments
			case eventlog.ToolResult:
				line += " " + b.CallID
			}
		}
		got = append(got, line)
	}
	want := []string{
		`assistant Go. call-msg-1{"command":"ls"}`, `assistant Other text call-msg-2{"command":"pwd"}`, "tool call-msg-2",
		"user More", "assistant End", "user Thanks",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNothing(t *testing.T) {
	for _, in := range []string{"", "rubbish", "{}", "[]", "7", `{"messages":[]}`, `{"messages":{"a":1}}`, `{"info":{}}`} {
		_, err := chat.Harness.Read(strings.NewReader(in))
		var format *transcript.FormatError
		if !errors.As(err, &format) || format.Harness != "chat" {
			t.Errorf("%q gives %v", in, err)
		}
	}
}

// TestMiniWithoutFunctions: the message after a text without exactly one command is the agent's own, unless
// the user interrupted it; after an interruption a command has no result.
func TestMiniWithoutFunctions(t *testing.T) {
	const command = "\"Look.\\n```bash\\nls\\n```\""
	for _, tt := range []struct{ said, extra, want string }{
		{command, `{}`, "tool call-msg-1"},
		{command, `{"interrupt_type":"UserInterruption"}`, "user Go on."},
		{`"I think."`, `{}`, "user Go on. injected"},
		{`"I think."`, `{"interrupt_type":"UserInterruption"}`, "user Go on."},
		{`null`, `{}`, "user Go on. injected"},
	} {
		tr := read(t, `{"messages":[{"role":"assistant","content":`+tt.said+`},{"role":"user","content":"Go on.","extra":`+tt.extra+`}],"trajectory_format":"mini-swe-agent-1"}`)
		e := tr.Sessions[0].Events[len(tr.Sessions[0].Events)-1]
		m, _ := e.Body.(*eventlog.Message)
		got := m.Role.String()
		switch b := m.Blocks[0].(type) {
		case eventlog.Text:
			got += " " + b.Text
		case eventlog.ToolResult:
			got += " " + b.CallID
		}
		if e.Labels[transcript.LabelInjected] == "true" {
			got += " injected"
		}
		if got != tt.want {
			t.Errorf("after %s with %s: %q instead of %q", tt.said, tt.extra, got, tt.want)
		}
	}
}
