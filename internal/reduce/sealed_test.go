package reduce_test

import (
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/provider"
	"github.com/contextd/contextd/internal/reduce"
)

func TestSealedBy(t *testing.T) {
	message := func(model string, blocks ...eventlog.Block) reduce.Message {
		m := reduce.Message{Role: eventlog.RoleAssistant, Model: model}
		for _, b := range blocks {
			m.Blocks = append(m.Blocks, reduce.Block{Block: b})
		}
		return m
	}
	signed, encrypted, open := eventlog.Thinking{Signature: "s"}, eventlog.Thinking{EncryptedContent: "e"}, eventlog.Thinking{Text: "hm"}
	hosted := eventlog.Thinking{Signature: `{"reasoning_details":[]}`}
	for name, c := range map[string]struct {
		messages []reduce.Message
		sealed   bool
		want     provider.Provider
	}{
		"one block":            {[]reduce.Message{message("claude-x", eventlog.Text{Text: "a"}, open, signed)}, true, provider.Anthropic},
		"two messages":         {[]reduce.Message{message("gpt-x", encrypted), message("gpt-x", encrypted)}, true, provider.OpenAI},
		"of two providers":     {[]reduce.Message{message("gpt-x", encrypted), message("gemini-x", signed)}, true, provider.Unknown},
		"one of nobody known":  {[]reduce.Message{message("", signed), message("gemini-x", signed)}, true, provider.Unknown},
		"by a host":            {[]reduce.Message{message("anthropic/claude-x", hosted), message("anthropic/claude-x", signed)}, true, provider.Anthropic},
		"none":                 {[]reduce.Message{message("claude-x", open)}, false, provider.Unknown},
		"a seal that is wrong": {[]reduce.Message{message("claude-x", encrypted)}, true, provider.Unknown},
	} {
		g := reduce.Group{Messages: c.messages, Sealed: c.sealed}
		if got := g.SealedBy(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestLoop(t *testing.T) {
	for script, want := range map[string]int{
		"assistant: Hello.": -1,
		"user: Go.":         0,
		"user: Go.\nassistant: call c1 ls {}\ntool: c1 a\nuser: More.\nassistant: Well.": 2,
	} {
		_, conv := conversation(t, script)
		if got := reduce.NewView(gauge, conv.Groups()).LastUser(); got != want {
			t.Errorf("%q: %d, want %d", script, got, want)
		}
	}
}
