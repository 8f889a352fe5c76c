package client_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/contextd/contextd/client"
	"github.com/contextd/contextd/client/read"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// Reasoning that a host of models sealed is in the log as it came, and in contexts for the model that wrote it with the same
// bytes; where the budget drops turns, each call that is shown still has it.
func TestReasoningThatAHostSealed(t *testing.T) {
	c, ctx := inMemory(t), t.Context()
	const model = "google/gemini-3-pro-preview"
	details := func(i int) string {
		return fmt.Sprintf(`"reasoning_details":[{"type":"reasoning.text","text":"Step %d: \u00e9\/\"x\".","format":"google-gemini-v1","index":0},`+
			`{"type":"reasoning.encrypted","data":"%s+/=","id":"tool_read_%d","format":"google-gemini-v1","index":1,"n":1.0}]`, i, strings.Repeat("Zz", 40), i)
	}
	appendTo(t, c, "s", client.System("You repair builds."))
	for i := range 24 {
		if i%6 == 0 {
			appendTo(t, c, "s", client.User(fmt.Sprint("Repair module ", i)))
		}
		response := fmt.Sprintf(`{"id":"gen-%d","object":"chat.completion","model":"%s","choices":[{"message":{"role":"assistant","content":null,"reasoning":"Step %d",%s,`+
			`"tool_calls":[{"id":"tool_read_%d","type":"function","function":{"name":"read","arguments":"{\"path\":\"%d.go\"}"},"extra_content":{"google":{"thought_signature":"c2ln%d"}}}]}}]}`,
			i, model, i, details(i), i, i, i)
		said, err := read.Response([]byte(response))
		if err != nil {
			t.Fatal(err)
		}
		appendTo(t, c, "s", said, client.Result(fmt.Sprintf("tool_read_%d__thought__c2ln", i), strings.Repeat(fmt.Sprintf("line of file %d\n", i), 60), false))
	}
	for _, test := range []struct {
		name   string
		format contextdv1.Format
		budget *contextdv1.Budget
		least  int // shown calls
		sealed bool
	}{
		{"the same model", contextdv1.Format_FORMAT_OPENAI_CHAT, &contextdv1.Budget{MaxTokens: 100_000, Model: model}, 24, true},
		{"a model that is not named", contextdv1.Format_FORMAT_OPENAI_CHAT, &contextdv1.Budget{MaxTokens: 100_000}, 24, true},
		{"a tight budget", contextdv1.Format_FORMAT_OPENAI_CHAT, &contextdv1.Budget{MaxTokens: 4000, Model: model}, 1, true},
		{"another maker", contextdv1.Format_FORMAT_OPENAI_CHAT, &contextdv1.Budget{MaxTokens: 100_000, Model: "openai/gpt-5"}, 24, false},
		{"the same model, again", contextdv1.Format_FORMAT_OPENAI_CHAT, &contextdv1.Budget{MaxTokens: 100_000, Model: model}, 24, true},
		{"Responses", contextdv1.Format_FORMAT_OPENAI_RESPONSES, &contextdv1.Budget{MaxTokens: 100_000, Model: model}, 24, false},
		{"Anthropic", contextdv1.Format_FORMAT_ANTHROPIC, &contextdv1.Budget{MaxTokens: 100_000, Model: model}, 24, false},
	} {
		got, err := c.Assemble(ctx, &contextdv1.AssembleContextRequest{SessionId: "s", Format: test.format, Budget: test.budget})
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		shown, newest := 0, false
		for _, message := range got.Messages {
			line := message.GetJson()
			if !json.Valid(line) {
				t.Fatalf("%s: %s", test.name, line)
			}
			for i := range 24 {
				if !bytes.Contains(line, fmt.Appendf(nil, `{"path":"%d.go"}`, i)) && !bytes.Contains(line, fmt.Appendf(nil, `{\"path\":\"%d.go\"}`, i)) ||
					!bytes.Contains(line, fmt.Appendf(nil, `"tool_read_%d"`, i)) {
					continue
				}
				shown, newest = shown+1, i == 23
				signature := fmt.Sprintf(`"extra_content":{"google":{"thought_signature":"c2ln%d"}}`, i)
				if sealed := bytes.Contains(line, []byte(","+details(i)+`,"tool_calls":[`)) && bytes.Contains(line, []byte(signature)); sealed != test.sealed {
					t.Errorf("%s: call %d is sealed is %t: %s", test.name, i, sealed, line)
				}
			}
			if !test.sealed && (bytes.Contains(line, []byte("reasoning_details")) || bytes.Contains(line, []byte("c2ln")) || bytes.Contains(line, []byte("ZzZz"))) {
				t.Errorf("%s has a seal: %s", test.name, line)
			}
		}
		if shown < test.least || !newest || test.budget.GetMaxTokens() == 4000 && shown == 24 {
			t.Errorf("%s: %d calls are shown", test.name, shown)
		}
	}
}

// LiteLLM's thinking_blocks in a transcript come back to the maker of the model as they were, if the transcript names the model.
func TestThinkingBlocksOfTranscripts(t *testing.T) {
	const blocks = `{"type":"thinking","thinking":"What is \"there\"? é","signature":"c2ln+/="},{"type":"redacted_thinking","data":"aGlk+/="},{"type":"thinking","thinking":"","signature":"c2lnMg=="}`
	const call = `{"id":"c1","type":"function","function":{"name":"bash","arguments":"{\"command\": \"ls\"}"}}`
	for harness, file := range map[string]string{
		"chat": `{"trajectory":[],"info":{},"history":[{"role":"user","content":"Mend it.","agent":"main","message_type":"observation"},
{"role":"assistant","content":"I look.","thought":"I look.","action":"ls","agent":"main","message_type":"action","tool_calls":[` + call + `],"thinking_blocks":[` + blocks + `]},
{"role":"tool","content":"a.go","agent":"main","message_type":"observation","tool_call_ids":["c1"]}],
"replay_config":"{\"agent\":{\"model\":{\"name\":\"claude-sonnet-4-5\"}}}"}`,
		"openhands": `[{"id":"s","timestamp":"2026-02-09T16:26:42","source":"environment","key":"agent","value":{"llm":{"model":"litellm_proxy/claude-sonnet-4-5"}},"kind":"ConversationStateUpdateEvent"},
{"id":"u","timestamp":"2026-02-09T16:26:42","source":"user","llm_message":{"role":"user","content":[{"type":"text","text":"Mend it."}]},"kind":"MessageEvent"},
{"id":"a","timestamp":"2026-02-09T16:26:43","source":"agent","thought":[{"type":"text","text":"I look."}],"reasoning_content":"What","thinking_blocks":[` + blocks + `],"tool_name":"bash","tool_call_id":"c1","tool_call":` + call + `,"llm_response_id":"g","kind":"ActionEvent"},
{"id":"o","timestamp":"2026-02-09T16:26:44","source":"environment","observation":{"content":[{"type":"text","text":"a.go"}],"kind":"TerminalObservation"},"tool_name":"bash","tool_call_id":"c1","action_id":"a","kind":"ObservationEvent"}]`,
	} {
		c, ctx := inMemory(t), t.Context()
		if _, err := c.Import(ctx, &contextdv1.ImportHeader{SessionId: "s", Harness: harness}, strings.NewReader(file)); err != nil {
			t.Fatal(err)
		}
		budget := &contextdv1.Budget{MaxTokens: 100_000, Model: "claude-sonnet-4-5"}
		got, err := c.Assemble(ctx, &contextdv1.AssembleContextRequest{SessionId: "s", Format: contextdv1.Format_FORMAT_ANTHROPIC, Budget: budget})
		if err != nil {
			t.Fatal(err)
		}
		want := `{"role":"assistant","content":[` + blocks + `,{"type":"text","text":"I look."},{"type":"tool_use",`
		if len(got.Messages) != 3 || !strings.HasPrefix(string(got.Messages[1].GetJson()), want) {
			t.Errorf("%s: the context is %s", harness, got.Messages)
		}
	}
}
