package render

import (
	"slices"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/provider"
)

// anthropicReasons reports whether all sealed reasoning of a message can be sent. If not, none is sent: Anthropic
// refuses an answer of its model of which a part is missing.
func anthropicReasons(maker string, blocks []eventlog.Block) bool {
	return !slices.ContainsFunc(blocks, func(block eventlog.Block) bool {
		t, ok := block.(eventlog.Thinking)
		return ok && t.Sealed() && !anthropicSealed(maker, t)
	})
}

func anthropicReasoning(t eventlog.Thinking, model string, returned bool) (text, seal bool) {
	if returned {
		return t.Text != "", t.Text != "" && t.Signature != "" && signsText(t)
	}
	sent := t.Sealed() && mayBeOf(provider.Anthropic, t, model)
	return sent, sent
}

// mayBeOf reports whether a provider may have made reasoning in a message of a model, which is empty if it is not known.
func mayBeOf(p provider.Provider, t eventlog.Thinking, model string) bool {
	by := provider.OfBlock(t, model)
	return by == p || model == "" && by != provider.Host
}

// signsText reports whether a block's signature is one of its text, and not the id of an item of OpenAI's or a host's lists.
func signsText(t eventlog.Thinking) bool {
	return t.EncryptedContent == "" && provider.OfBlock(t, "") != provider.Host
}

// anthropicSealed reports whether reasoning is signed or redacted as Anthropic does it.
func anthropicSealed(maker string, t eventlog.Thinking) bool {
	return provider.OfBlock(t, maker) == provider.Anthropic && t.EncryptedContent == "" &&
		(t.Signature != "" && t.RedactedData == "" || t.Signature == "" && t.RedactedData != "" && t.Text == "")
}

// anthropicThinking carries the reasoning that Anthropic sealed, which must come back as it was, if all of the message's is
// carried. To models of others whose API wants reasoning back it carries all that is text.
func anthropicThinking(c *content, i int, t eventlog.Thinking, whole bool) {
	switch {
	case isReturned(c.message, t):
		if !signsText(t) {
			t.Signature = ""
		}
		c.add(thought, i, anthropicThought(t.Text, t.Signature))
	case c.message.ReturnReasoning || !whole || !anthropicSealed(c.maker, t):
		c.converted(i, LeftOut, reasoningOf(t, c.maker))
	case t.Signature != "":
		c.add(thought, i, anthropicThought(t.Text, t.Signature))
	default:
		o := object{dst: []byte{'{'}}
		o.always("type", "redacted_thinking")
		if printable(t.RedactedData) {
			o.always("data", t.RedactedData)
		} else {
			o.base64("data", t.RedactedData)
		}
		c.add(thought, i, append(o.dst, '}'))
	}
}

func anthropicThought(text, signature string) []byte {
	o := begin(len(text) + len(signature))
	o.always("type", "thinking")
	o.always("thinking", text)
	o.always("signature", signature)
	return append(o.dst, '}')
}

// printable reports whether redacted data is the text that Anthropic sends rather than
// the bytes that the text encodes.
func printable(data string) bool {
	return strings.Trim(data, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=-_.:") == ""
}
