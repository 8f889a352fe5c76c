package chat

import (
	"cmp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// detail is a part of a reasoning in OpenRouter's form.
type detail struct {
	Type      transcript.Word `json:"type"`
	ID        transcript.Word `json:"id"`
	Format    transcript.Word `json:"format"`
	Text      transcript.Word `json:"text"`
	Summary   transcript.Word `json:"summary"`
	Signature transcript.Word `json:"signature"`
	Data      transcript.Word `json:"data"`
}

// thinking is what the model thought before it wrote the message, in whatever form that is there.
func (m *message) thinking() []eventlog.Thinking {
	if signed := m.signed(); len(signed) > 0 {
		return signed
	}
	if thought := cmp.Or(m.ReasoningContent, string(m.Reasoning)); thought != "" || m.Seal != "" || len(m.Encrypted.Value) > 0 {
		return m.vibe.thinking(thought)
	}
	if len(m.thoughts) > 0 {
		return m.thoughts
	}
	var out []eventlog.Thinking
	for _, d := range m.Details.Value {
		t := eventlog.Thinking{Text: cmp.Or(string(d.Text), string(d.Summary)), Signature: string(d.Signature)}
		if d.Type == "reasoning.encrypted" && strings.HasPrefix(string(d.Format), content.OpenAI) {
			t = content.OpenAIReasoning("", string(d.Data), string(d.ID))
		}
		if t != (eventlog.Thinking{}) {
			out = append(out, t)
		}
	}
	return out
}

// thought is the thinking in a part of a content.
func (p *part) thought() (eventlog.Thinking, bool) {
	if p.Type != "reasoning" && p.Type != "thinking" && p.Type != "think" {
		return eventlog.Thinking{}, false
	}
	for _, raw := range []jsontext.Value{p.Text, p.Reasoning, p.Think} {
		if text, ok := transcript.Text(raw); ok {
			return content.OpenAIReasoning(text, string(p.Encrypted), p.ID), true
		}
	}
	return content.OpenAIReasoning("", string(p.Encrypted), p.ID), p.Type == "reasoning" && p.Encrypted != ""
}

// sealed puts Google's signature before the block that it seals: the first call, or else the last block.
func (m *message) sealed(blocks []eventlog.Block) []eventlog.Block {
	if m.seal == "" || len(blocks) == 0 {
		return blocks
	}
	at := slices.IndexFunc(blocks, func(b eventlog.Block) bool { _, ok := b.(eventlog.ToolCall); return ok })
	if at < 0 {
		at = len(blocks) - 1
	}
	signature := eventlog.ProviderBlock{Provider: content.Google, JSON: transcript.Wrap("thoughtSignature", m.seal)}
	return slices.Insert(blocks, at, eventlog.Block(signature))
}

// signed is the reasoning as LiteLLM repeats it beside its text, in Anthropic's form with the signatures.
func (m *message) signed() (out []eventlog.Thinking) {
	if len(m.Blocks) == 0 || m.Blocks[0] != '[' {
		return nil
	}
	blocks, err := content.ChatBlocks(m.Blocks)
	if err != nil {
		return nil
	}
	for _, b := range blocks {
		t, ok := b.(eventlog.Thinking)
		if !ok {
			return nil
		}
		out = append(out, t)
	}
	return out
}
