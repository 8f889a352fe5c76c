package render

import (
	"encoding/json"
	"slices"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/provider"
)

// reasoningItem is the item of reasoning that OpenAI sealed. The seal holds for the id
// that the item had, and the provider refuses it under another: so an id is never made
// up, and an item whose id nobody kept goes without, which the provider takes. The id, or
// the item as a whole, stands in the block's signature.
func reasoningItem(model string, b eventlog.Thinking) (item []byte, named, ok bool) {
	if provider.OfBlock(b, model) != provider.OpenAI || b.RedactedData != "" {
		return nil, false, false
	}
	if named, ok := wholeReasoning(b.Signature); ok {
		return appendRaw(nil, b.Signature), named, true
	}
	if b.EncryptedContent == "" {
		return nil, false, false
	}
	named = strings.HasPrefix(b.Signature, "rs_") && plain(b.Signature)
	o := object{dst: []byte{'{'}}
	o.always("type", "reasoning")
	if named {
		o.always("id", b.Signature)
	}
	o.name("summary")
	o.dst = append(o.dst, '[')
	if b.Text != "" {
		s := object{dst: append(o.dst, '{')}
		s.always("type", "summary_text")
		s.always("text", b.Text)
		o.dst = append(s.dst, '}')
	}
	o.dst = append(o.dst, ']')
	o.always("encrypted_content", b.EncryptedContent)
	return append(o.dst, '}'), named, true
}

func plain(id string) bool {
	return strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}

// wholeReasoning reports whether a signature is a sealed item of reasoning as the
// provider gave it, and whether that has an id.
func wholeReasoning(raw string) (named, ok bool) {
	if !strings.HasPrefix(raw, "{") {
		return false, false
	}
	m, ok := members(raw, []string{"type", "summary", "encrypted_content"}, []string{"id", "content", "status"})
	if !ok || textIn(m["type"]) != "reasoning" || textIn(m["encrypted_content"]) == "" || !textParts(m["summary"], "summary_text") {
		return false, false
	}
	if content, there := m["content"]; there && !textParts(content, "reasoning_text") {
		return false, false
	}
	if status, there := m["status"]; there && !slices.Contains([]string{"in_progress", "completed", "incomplete"}, textIn(status)) {
		return false, false
	}
	id, named := m["id"]
	return named, !named || textIn(id) != ""
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
// again: none that OpenAI sealed, or without its id.
func looseReasoning(m Message) bool {
	return slices.ContainsFunc(m.Blocks, func(block eventlog.Block) bool {
		b, ok := block.(eventlog.Thinking)
		if !ok {
			return false
		}
		_, named, ok := reasoningItem(m.Model, b)
		return !ok || !named
	})
}
