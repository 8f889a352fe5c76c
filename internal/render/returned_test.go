package render_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/render"
	"github.com/contextd/contextd/internal/render/rules"
)

// TestReturnedReasoning asks a model whose API wants reasoning back: each message of the assistant has some.
func TestReturnedReasoning(t *testing.T) {
	said, call := eventlog.Text{Text: "I look."}, eventlog.ToolCall{CallID: "c1", Name: "ls", Arguments: "{}"}
	thinking := func(text string) eventlog.Thinking { return eventlog.Thinking{Text: text} }
	var calls []eventlog.Block
	for range 130 {
		calls = append(calls, call)
	}
	for _, c := range []struct {
		name, model     string
		blocks          []eventlog.Block
		chat, anthropic []string // the reasoning of each message; openai_responses has the first of chat's
	}{
		{"its own", "deepseek-flash", []eventlog.Block{thinking("First, look."), said, call}, []string{"First, look."}, []string{"First, look./"}},
		{"in parts", "", []eventlog.Block{thinking("First, look."), said, thinking("Then list."), call},
			[]string{"First, look.\nThen list."}, []string{"First, look./", "Then list./"}},
		{"none", "gpt-5", []eventlog.Block{said, call}, []string{" "}, []string{" /"}},
		{"none, and no call", "deepseek-flash", []eventlog.Block{said}, []string{" "}, []string{" /"}},
		{"signed by its endpoint", "deepseek-flash", []eventlog.Block{eventlog.Thinking{Text: "First, look.", Signature: "s1"}, call},
			[]string{"First, look."}, []string{"First, look./s1"}},
		{"redacted", "claude-opus-5", []eventlog.Block{eventlog.Thinking{RedactedData: "abc"}, said}, []string{" "}, []string{" /"}},
		{"signed without its text", "claude-opus-5", []eventlog.Block{eventlog.Thinking{Signature: "abc"}, said}, []string{" "}, []string{" /"}},
		{"after a call", "", []eventlog.Block{said, call, thinking("Then wait.")}, []string{"Then wait."}, []string{"Then wait./"}},
		{"encrypted", "gpt-5", []eventlog.Block{eventlog.Thinking{EncryptedContent: "abc"}, said}, []string{" "}, []string{" /"}},
		{"summarised and encrypted", "gpt-5", []eventlog.Block{eventlog.Thinking{Text: "Looking", Signature: "rs_1", EncryptedContent: "abc"}, said}, []string{"Looking"}, []string{"Looking/"}},
		{"more calls than a message may have", "kimi-k2.6", slices.Concat([]eventlog.Block{thinking("All.")}, calls), []string{"All.", " "}, []string{"All./"}},
	} {
		messages := []render.Message{
			{Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: "Look."}}},
			{Role: eventlog.RoleAssistant, Model: c.model, Blocks: c.blocks, ReturnReasoning: true},
		}
		for i, block := range c.blocks {
			if b, ok := block.(eventlog.ToolCall); ok {
				b.CallID += strings.Repeat("x", i)
				messages[1].Blocks[i] = b
				messages = append(messages, render.Message{Role: eventlog.RoleTool, Blocks: []eventlog.Block{eventlog.ToolResult{CallID: b.CallID, Content: []eventlog.Block{said}}}})
			}
		}
		for format, want := range map[string][]string{"openai_chat": c.chat, "anthropic": c.anthropic, "openai_responses": c.chat[:1]} {
			f, _ := render.FormatNamed(format)
			lines := linesOf(joined(f, messages))
			for _, v := range rules.OfReturning(format)(lines) {
				t.Errorf("%s, %s: %v", c.name, format, v)
			}
			if got := reasoningIn(t, lines); !slices.Equal(got, want) {
				t.Errorf("%s, %s: reasoning %q, want %q", c.name, format, got, want)
			}
		}
	}
}

// reasoningIn is the reasoning in the lines of a request, for Anthropic's form with its signatures.
func reasoningIn(t *testing.T, lines [][]byte) (out []string) {
	for _, line := range lines {
		var m struct {
			Reasoning *string `json:"reasoning_content"`
			Content   any
		}
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatal(err)
		}
		if m.Reasoning != nil {
			out = append(out, *m.Reasoning)
		}
		parts, _ := m.Content.([]any)
		for _, part := range parts {
			switch p, _ := part.(map[string]any); p["type"] {
			case "thinking":
				out = append(out, p["thinking"].(string)+"/"+p["signature"].(string))
			case "reasoning_text":
				out = append(out, p["text"].(string))
			}
		}
	}
	return out
}
