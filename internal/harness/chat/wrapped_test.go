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
