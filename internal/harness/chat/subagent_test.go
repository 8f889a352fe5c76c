package chat_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextd/contextd/internal/harness/transcript"
)

// TestSubagents: messages whose role names a subagent are a session of their own, begun by the call whose
// prompt is their first message. Other messages stay in the main session.
func TestSubagents(t *testing.T) {
	const (
		user  = `{"role":"user","content":"Fix it."}`
		begin = `{"role":"assistant","content":"","tool_calls":[{"id":"t1","function":{"name":"Agent","arguments":"{\"prompt\":\"Read a.\"}"}}]}`
		end   = `{"role":"tool","tool_call_id":"t1","content":"It is empty."}`
	)
	of := func(id, original, members string) string {
		return `{"role":"assistant-subagent-` + id + `",` + members + `,"_metadata":{` + original + `}}`
	}
	const asUser, asTool, asModel = `"original_role":"user"`, `"original_role":"tool"`, `"original_role":"assistant"`
	prompt := of("a1", asUser, `"content":"Read a."`)
	call := of("a1", asModel, `"content":"","tool_calls":[{"id":"r1","function":{"name":"Read","arguments":"{}"}}]`)
	bareCall := of("a1", ``, `"content":"","tool_calls":[{"id":"r1","function":{"name":"Read","arguments":"{}"}}]`)
	result := of("a1", asTool, `"tool_call_id":"r1","content":"nothing"`)
	bareResult := of("a1", ``, `"tool_call_id":"r1","content":"nothing"`)
	other := of("b2", asModel, `"content":"I wait."`)
	type session struct {
		Suffix, Call, Agent string
		Said                []string
	}
	main := func(said ...string) session { return session{Said: said} }
	for _, tc := range []struct {
		name, in string
		want     []session
	}{
		{"two at once", user + `,` + begin + `,` + prompt + `,` + other + `,` + call + `,` + result + `,` + end, []session{
			main("msg-1 user | Fix it.", `msg-2 assistant | t1 Agent{"prompt":"Read a."}`, "msg-7 tool | t1=It is empty."),
			{"sidechain-1", "t1", "a1", []string{"msg-3 user | Read a.", "msg-5 assistant | r1 Read{}", "msg-6 tool | r1=nothing"}},
			{"sidechain-2", "", "b2", []string{"msg-4 assistant | I wait."}},
		}},
		{"without what they were", user + `,` + bareCall + `,` + bareResult, []session{
			main("msg-1 user | Fix it."),
			{"sidechain-1", "", "a1", []string{"msg-2 assistant | r1 Read{}", "msg-3 tool | r1=nothing"}},
		}},
		{"a result of another", user + `,` + result, []session{
			main("msg-1 user | Fix it."),
			{"sidechain-1", "", "a1", []string{"msg-2/orphan-result chat.orphan-result"}},
		}},
		{"no role of a message", user + `,` + of("a1", `"original_role":"assistant-subagent-c3"`, `"content":"x"`) + `,` + of("", asModel, `"content":"x"`), []session{
			main("msg-1 user | Fix it.", "msg-2 chat.unknown-role", "msg-3 chat.unknown-role"),
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tr := read(t, `{"messages":[`+tc.in+`]}`)
			var got []session
			for _, s := range tr.Sessions {
				got = append(got, session{s.Suffix, s.ParentCallID, s.Labels["chat.agent"], said(s.Events)})
				if s.Labels[transcript.LabelHarness] != "chat" {
					t.Errorf("labels are %v", s.Labels)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	tr := read(t, `[{"messages":[`+user+`]},{"messages":[`+user+`,`+begin+`,`+prompt+`]}]`)
	if got := tr.Sessions[2]; got.Suffix != "2/sidechain-1" || got.Sidechain() {
		t.Errorf("the subagent of the second conversation is %q, begun by %q", got.Suffix, got.ParentCallID)
	}
}
