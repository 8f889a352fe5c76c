package render

import (
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/provider"
)

// unsigned replaces a missing signature of a call. Gemini 3 refuses unsigned calls of the current turn, and documents
// this value for calls that it did not make.
const unsigned = "skip_thought_signature_validator"

// modelTurn makes the parts of a model's content.
type modelTurn struct {
	*content
	// signature belongs to the next part that is no reasoning; signed is the block in which it came.
	signature string
	signed    int
	calls     int
}

func geminiModel(c *content) {
	t := &modelTurn{content: c}
	c.maker = provider.Maker(c.message.Model, c.message.Blocks)
	for i, block := range c.message.Blocks {
		if t.beside.hold(i, block, t.converted) {
			continue
		}
		switch b := block.(type) {
		case eventlog.Text:
			if t.shown(i, b.Text) {
				t.add(said, i, geminiText(b.Text, t.take()))
			}
		case eventlog.Thinking:
			t.think(i, b)
		case eventlog.ToolCall:
			t.call(i, b)
		case eventlog.Media:
			t.add(said, i, geminiMedia(c, i, b, t.take()))
		case eventlog.ProviderBlock:
			t.native(i, b)
		case eventlog.ToolResult:
			t.add(said, i, geminiText(t.describe(i, "tool result"), ""))
		}
	}
	t.beside.leave(t.converted)
	if len(t.items) > 0 && t.items[len(t.items)-1].kind != thought {
		t.flush()
	}
	t.leaveThoughts()
	if t.signature != "" {
		t.converted(t.signed, LeftOut, "signature of nothing")
	}
}

// take returns the pending signature for the part that is being made, and clears it.
func (t *modelTurn) take() string {
	s := t.signature
	t.signature = ""
	return s
}

// flush puts a signature without a following part into a part of its own, as Gemini does at the end of a stream.
func (t *modelTurn) flush() {
	if t.signature != "" {
		t.add(said, t.signed, geminiText("", t.take()))
	}
}

// sign keeps a signature for the part that it belongs to.
func (t *modelTurn) sign(i int, signature string) {
	if !signatureBytes(signature) {
		t.converted(i, LeftOut, "signature that is no base64")
		return
	}
	t.flush()
	t.signature, t.signed = signature, i
}

// think carries Gemini's own reasoning, which may come without a signature.
func (t *modelTurn) think(i int, b eventlog.Thinking) {
	if provider.OfBlock(b, t.maker) != provider.Gemini || b.EncryptedContent != "" || b.RedactedData != "" {
		t.converted(i, LeftOut, reasoningOf(b, t.maker))
		return
	}
	if !hollow(b.Text) {
		o := object{dst: []byte{'{'}}
		o.always("text", b.Text)
		o.raw("thought", "true")
		t.add(thought, i, append(o.dst, '}'))
	}
	if b.Signature != "" {
		t.sign(i, b.Signature)
	}
}

func geminiReasoning(t eventlog.Thinking, model string, _ bool) (text, seal bool) {
	sent := mayBeOf(provider.Gemini, t, model)
	return sent, sent
}

func (t *modelTurn) call(i int, b eventlog.ToolCall) {
	signature := t.take()
	if signature == "" {
		signature = t.beside.google()
	}
	if signature == "" && t.calls == 0 {
		signature = unsigned
	}
	t.calls++
	o := object{dst: append([]byte(nil), `{"functionCall":{`...)}
	o.always("id", t.callID(i, b.CallID))
	o.always("name", t.toolName(i, b.Name, longestGeminiName, geminiNameByte))
	o.name("args")
	o.dst = append(t.arguments(o.dst, i, b.Arguments, geminiDecoder), '}')
	o.str("thoughtSignature", signature)
	t.add(called, i, append(o.dst, '}'))
}

// native carries a part of Gemini's as it came, or describes it. A part that is nothing
// but a signature is that of what follows.
func (t *modelTurn) native(i int, b eventlog.ProviderBlock) {
	if signature, ok := bareSignature(b); ok {
		t.sign(i, signature)
		return
	}
	part, ok := geminiNative(b, speakerModel)
	if !ok {
		t.add(said, i, geminiText(t.foreign(i, b), t.take()))
		return
	}
	t.flush()
	t.add(said, i, part)
}
