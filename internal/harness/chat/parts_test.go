package chat_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	eventlog "github.com/contextd/contextd/internal/log"
)

// said returns what each message of a session says, block by block.
func said(events []eventlog.Event) (lines []string) {
	for _, e := range events {
		m, ok := e.Body.(*eventlog.Message)
		if !ok {
			lines = append(lines, e.ID+" "+e.Body.(*eventlog.Custom).Type)
			continue
		}
		line := e.ID + " " + m.Role.String()
		for _, b := range m.Blocks {
			line += " | " + block(b)
		}
		lines = append(lines, line)
	}
	return lines
}

func block(b eventlog.Block) string {
	switch b := b.(type) {
	case eventlog.Text:
		return b.Text
	case eventlog.Thinking:
		return "(" + b.Text + ")"
	case eventlog.ToolCall:
		return b.CallID + " " + b.Name + b.Arguments
	case eventlog.ToolResult:
		inner := make([]string, len(b.Content))
		for i, c := range b.Content {
			inner[i] = block(c)
		}
		result := b.CallID + "=" + strings.Join(inner, "+")
		if b.IsError {
			result += " failed"
		}
		return result
	case eventlog.ProviderBlock:
		return b.Provider + b.JSON
	}
	return "?"
}

// TestOnePart: a content may be a single part without a list around it.
func TestOnePart(t *testing.T) {
	tr := read(t, `{"role":"user","content":{"type":"text","text":"Look."}}
		{"role":"assistant","content":{"type":"thinking","text":"Hm."}}
		{"role":"assistant","content":{"type":"tool_use","tool_name":"Bash","tool_id":"b1","input":{"command":"ls"}}}
		{"role":"tool","content":{"type":"tool_result","tool_id":"b1","output":"none","is_error":true}}
		{"role":"assistant","content":{"type":"tool_use","tool_name":"Read","tool_id":"b2","input":{}}}
		{"role":"tool","content":{"type":"tool_result","tool_id":"b2","output":[{"type":"text","text":"a"}],"is_error":false}}
		{"role":"assistant","content":{"type":"text","text":"Nothing."}}
		{"role":"assistant","content":"","tool_calls":[{"id":"b3","function":{"name":"n","arguments":"{}"}}]}
		{"role":"tool","tool_call_id":"b3","content":{"ok":true}}
		{"role":"user","content":{"ok":true}}`)
	want := []string{
		"msg-1 user | Look.", "msg-2 assistant | (Hm.)", `msg-3 assistant | b1 Bash{"command":"ls"}`, "msg-4 tool | b1=none failed",
		"msg-5 assistant | b2 Read{}", "msg-6 tool | b2=a", "msg-7 assistant | Nothing.", "msg-8 assistant | b3 n{}",
		`msg-9 tool | b3={"ok":true}`, "msg-10 chat.unreadable",
	}
	if diff := cmp.Diff(want, said(tr.Sessions[0].Events)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestPartsThatAreCalls: a call that is in tool_calls and in the content is one call, a call that is only in
// the content is read too, and results are texts.
func TestPartsThatAreCalls(t *testing.T) {
	const calls = `"tool_calls":[{"id":"a","type":"function","function":{"name":"ls","arguments":"{\"path\":\"/\"}"}}]`
	const answer = `{"role":"tool","tool_call_id":"a","content":`
	for _, tc := range []struct {
		name, in string
		want     []string
	}{
		{"both", `{"role":"assistant","content":[{"type":"tool_call","tool_call_id":"a","name":"ls","arguments":"{\"path\":\"/\"}"}],` + calls + `}`,
			[]string{`msg-1 assistant | a ls{"path":"/"}`}},
		{"both, after a thought", `{"role":"assistant","content":[{"type":"reasoning","text":"Hm."},{"type":"text","text":"I look."},{"type":"tool_use","tool_call_id":"a","name":"ls","arguments":"{}"}],` + calls + `}`,
			[]string{`msg-1 assistant | (Hm.) | I look. | a ls{"path":"/"}`}},
		{"both, in Anthropic's form", `{"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"s"},{"type":"tool_use","id":"a","name":"ls","input":{"path":"/"}}],` + calls + `}`,
			[]string{`msg-1 assistant | (Hm.) | a ls{"path":"/"}`}},
		{"both, without an id", `{"role":"assistant","content":[{"type":"tool_call","name":"ls","args":{"path":"/"}}],` + calls + `}`,
			[]string{`msg-1 assistant | a ls{"path":"/"}`}},
		{"alone", `{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_call","id":"a","name":"ls","args":{"path":"/"}}]}`,
			[]string{`msg-1 assistant | I look. | a ls{"path":"/"}`}},
		{"one of two", `{"role":"assistant","content":[{"type":"tool_use","tool_call_id":"b","name":"pwd","arguments":""}],` + calls + `}`,
			[]string{`msg-1 assistant | a ls{"path":"/"} | b pwd{}`}},
		{"Anthropic's form", `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"ls","input":{"path":"/"}}]}`,
			[]string{`msg-1 assistant | a ls{"path":"/"}`}},
		{"a user's", `{"role":"user","content":[{"type":"tool_call","id":"a"}]}`,
			[]string{`msg-1 user | openai{"type":"tool_call","id":"a"}`}},
		{"output", `{"role":"assistant","content":"",` + calls + `},` + answer + `[{"type":"tool_output","text":"bin"}]}`,
			[]string{`msg-1 assistant | a ls{"path":"/"}`, `msg-2 tool | a=bin`}},
		{"a list of outputs", `{"role":"assistant","content":"",` + calls + `},` + answer + `[{"type":"tool_output","text":[{"type":"text","text":"bin"},{"type":"text","text":"lib"}]},{"type":"tool_output","text":"etc"}]}`,
			[]string{`msg-1 assistant | a ls{"path":"/"}`, `msg-2 tool | a=bin+lib+etc`}},
		{"a list that is no text", `{"role":"assistant","content":"",` + calls + `},` + answer + `[{"type":"tool_output","text":[{"type":"tool_reference","tool_name":"Go"}]}]}`,
			[]string{`msg-1 assistant | a ls{"path":"/"}`, `msg-2 tool | a=anthropic{"type":"tool_reference","tool_name":"Go"}`}},
		{"no output", `{"role":"assistant","content":"",` + calls + `},` + answer + `[{"type":"tool_output","text":null},{"type":"tool_output"}]}`,
			[]string{`msg-1 assistant | a ls{"path":"/"}`, `msg-2 tool | a=`}},
		{"an output of another shape", `{"role":"assistant","content":"",` + calls + `},` + answer + `[{"type":"tool_output","text":{"n":1}}]}`,
			[]string{`msg-1 assistant | a ls{"path":"/"}`, `msg-2 tool | a={"n":1}`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tr := read(t, `{"messages":[`+tc.in+`]}`)
			if diff := cmp.Diff(tc.want, said(tr.Sessions[0].Events)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
