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
	Text    transcript.Word `json:"text"`
	Summary transcript.Word `json:"summary"`
}

// thinking is what the model thought before it wrote the message, in whatever form that is there.
func (m *message) thinking() []eventlog.Thinking {
	if signed := m.signed(); len(signed) > 0 {
		return signed
	}
	thought := cmp.Or(m.ReasoningContent, string(m.Reasoning))
	if seal := content.HostSeal(m.Details, nil); seal != "" {
		return []eventlog.Thinking{{Text: cmp.Or(thought, textOf(m.thoughts), textOf(m.detailed())), Signature: seal}}
	}
	if thought != "" || m.Seal != "" || len(m.Encrypted.Value) > 0 {
		return m.vibe.thinking(thought)
	}
	if len(m.thoughts) > 0 {
		return m.thoughts
	}
	return m.detailed()
}

// detailed are the texts in OpenRouter's form.
func (m *message) detailed() (out []eventlog.Thinking) {
	var details transcript.Maybe[[]transcript.Maybe[detail]]
	if len(m.Details) == 0 || transcript.Decode(m.Details, &details) != nil {
		return nil
	}
	for _, d := range details.Value {
		if text := cmp.Or(d.Value.Text, d.Value.Summary); text != "" {
			out = append(out, eventlog.Thinking{Text: string(text)})
		}
	}
	return out
}

func textOf(thoughts []eventlog.Thinking) string {
	var texts []string
	for _, t := range thoughts {
		if t.Text != "" {
			texts = append(texts, t.Text)
		}
	}
	return strings.Join(texts, "\n\n")
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
