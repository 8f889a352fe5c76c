package render

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/provider"
)

// reasoningItem is the item of reasoning that OpenAI sealed. The seal holds for the id
// that the item had, and the provider refuses it under another: so an id is never made
// up, and an item whose id nobody kept goes without, which the provider takes. The id, or
// the item as a whole, is in the block's signature.
func reasoningItem(maker string, b eventlog.Thinking) (item []byte, id string, ok bool) {
	if provider.OfBlock(b, maker) != provider.OpenAI || b.RedactedData != "" {
		return nil, "", false
	}
	if id, ok := wholeReasoning(b.Signature); ok {
		return appendNative(nil, b.Signature), id, true
	}
	if hollow(b.EncryptedContent) {
		return nil, "", false
	}
	if itemID(b.Signature, "rs_") {
		id = b.Signature
	}
	o := object{dst: []byte{'{'}}
	o.always("type", "reasoning")
	o.str("id", id)
	o.name("summary")
	o.dst = append(o.dst, '[')
	if b.Text != "" {
		o.dst = appendSummary(o.dst, b.Text)
	}
	o.dst = append(o.dst, ']')
	o.always("encrypted_content", b.EncryptedContent)
	return append(o.dst, '}'), id, true
}

func responsesReasoning(t eventlog.Thinking, model string, returned bool) (text, seal bool) {
	if returned {
		return t.Text != "", false
	}
	sent := t.Sealed() && mayBeOf(provider.OpenAI, t, model)
	return sent, sent
}

func appendSummary(dst []byte, text string) []byte {
	o := object{dst: append(dst, '{')}
	o.always("type", "summary_text")
	o.always("text", text)
	return append(o.dst, '}')
}

// returnedItem is the item with all texts of a message's reasoning, for models that want it back. Servers that have no
// seals take it by its content, and refuse a seal.
func returnedItem(m *Message) outputItem {
	o := object{dst: []byte{'{'}}
	o.always("type", "reasoning_text")
	o.always("text", returned(m))
	content := string(append(o.dst, '}'))
	o = object{dst: []byte{'{'}}
	o.always("type", "reasoning")
	o.always("id", madeUpID("rs_", m, 0, fmt.Sprint(m.Seqs, content)))
	o.dst = append(o.dst, `,"summary":[],"content":[`...)
	return outputItem{append(append(o.dst, content...), ']', '}'), "", -1}
}

// longestItemID is the longest id of an item that is taken for the provider's.
const longestItemID = 64

// itemID reports whether an id is one of the provider's for an item of a kind, whose ids
// begin alike.
func itemID(id, begins string) bool {
	return strings.HasPrefix(id, begins) && len(id) > len(begins) && len(id) <= longestItemID && allOf(id, wordByte)
}

// wholeReasoning reports whether a signature is a sealed item of reasoning as the
// provider gave it, and the id that it has, if any.
func wholeReasoning(raw string) (id string, ok bool) {
	if !strings.HasPrefix(raw, "{") {
		return "", false
	}
	m, ok := members(raw, []string{"type", "summary", "encrypted_content"}, []string{"id", "content", "status"})
	if !ok || textIn(m["type"]) != "reasoning" || hollow(textIn(m["encrypted_content"])) || !textParts(m["summary"], "summary_text") {
		return "", false
	}
	if content, there := m["content"]; there && !textParts(content, "reasoning_text") {
		return "", false
	}
	if status, there := m["status"]; there && !slices.Contains([]string{"in_progress", "completed", "incomplete"}, textIn(status)) {
		return "", false
	}
	given, named := m["id"]
	id = textIn(given)
	return id, !named || itemID(id, "rs_")
}

// textParts reports whether a JSON text is a list of texts of one type.
func textParts(raw json.RawMessage, kind string) bool {
	var parts []json.RawMessage
	if json.Unmarshal(raw, &parts) != nil || parts == nil {
		return false
	}
	return !slices.ContainsFunc(parts, func(part json.RawMessage) bool {
		m, ok := members(string(part), []string{"type", "text"}, nil)
		return !ok || textIn(m["type"]) != kind || m["text"][0] != '"'
	})
}

// looseReasoning reports whether a message has reasoning that its items cannot be tied to
// again: none that OpenAI sealed, without its id, or left out.
func looseReasoning(m Message, maker string) bool {
	return m.Unreasoned || m.ReturnReasoning || slices.ContainsFunc(m.Blocks, func(block eventlog.Block) bool {
		b, ok := block.(eventlog.Thinking)
		if !ok {
			return false
		}
		_, id, ok := reasoningItem(maker, b)
		return !ok || id == ""
	})
}
