package chat_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSystemPromptBeside: a prompt that is a member beside the messages is the first message, once.
func TestSystemPromptBeside(t *testing.T) {
	for _, in := range []string{
		`{"system_prompt":"Fix.","messages":[{"role":"user","content":"hi"}]}`,
		`{"messages":[{"role":"user","content":"hi"}],"systemPrompt":"Fix."}`,
		`{"system_prompt":"Fix.","messages":[{"role":"system","content":"Fix."},{"role":"user","content":"hi"}]}`,
	} {
		var got []string
		for _, line := range said(read(t, in).Sessions[0].Events) {
			_, line, _ = strings.Cut(line, " ")
			got = append(got, line)
		}
		if diff := cmp.Diff([]string{"system | Fix.", "user | hi"}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", in, diff)
		}
	}
}

// TestKimi: the messages of Kimi CLI are between lines of its own.
func TestKimi(t *testing.T) {
	got := said(read(t, `{"role":"_system_prompt","content":"Fix."}
{"role":"_checkpoint","id":0}
{"role":"user","content":"hi"}
{"role":"assistant","content":[{"type":"think","think":"Hm.","encrypted":null},{"type":"text","text":"I look."}],"tool_calls":[{"type":"function","id":"c1","function":{"name":"Edit","arguments":"{}"}}]}
{"role":"_usage","token_count":12}
{"role":"tool","content":"<tool_use_error>Not read yet.</tool_use_error>","tool_call_id":"c1"}
`).Sessions[0].Events)
	if diff := cmp.Diff([]string{
		"msg-1 system | Fix.", "msg-2 chat.bookkeeping", "msg-3 user | hi", "msg-4 assistant | (Hm.) | I look. | c1 Edit{}",
		"msg-5 chat.bookkeeping", "msg-6 tool | c1=<tool_use_error>Not read yet.</tool_use_error> failed",
	}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
