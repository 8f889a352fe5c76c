package render

import (
	"cmp"
	"encoding/json"
	"strings"
	"unicode"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/provider"
)

// content gathers the provider's items for the blocks of one message.
type content struct {
	message *Message
	// maker is the model that wrote an assistant's message, as far as it is known.
	maker string
	// citing says which kinds of blocks have citations in this request.
	citing citing
	// across are the uses of server tools whose result is not in their message, and which go out all the same; true for
	// code that waits for calls of this message.
	across map[string]bool
	// read are the blocks of an assistant's message as Anthropic's format reads them, once for all its renderings.
	read        []anthropicBlock
	beside      beside
	items       []item
	conversions []Conversion
}

// begin opens an object that holds about so many bytes.
func begin(size int) object {
	return object{dst: append(make([]byte, 0, size+size/16+64), '{')}
}

// item is an element of a message's content.
type item struct {
	kind  itemKind
	block int // index of the block that it was made of
	json  []byte
}

type itemKind uint8

const (
	said itemKind = iota + 1
	thought
	called
)

// add appends an item; empty JSON adds none.
func (c *content) add(kind itemKind, block int, json []byte) {
	if json == nil {
		return
	}
	c.items = append(c.items, item{kind, block, json})
}

// converted records that block i was not carried unchanged.
func (c *content) converted(i int, kind ConversionKind, what string) {
	at := c.message.place(i)
	c.conversions = append(c.conversions, Conversion{Seq: at.Seq, Block: at.Block, Kind: kind, What: what})
}

// describe records that a text replaces block i, or a part of it, and returns that text.
func (c *content) describe(i int, what string) string {
	c.converted(i, Described, what)
	return description(what, c.message.place(i), c.message.Recall)
}

// shown reports whether a text is not blank. A blank text is left out, and that is recorded.
func (c *content) shown(i int, text string) bool {
	if !hollow(text) {
		return true
	}
	if text != "" {
		c.converted(i, LeftOut, "whitespace")
	}
	return false
}

// callID is the id of call i in the provider's format.
func (c *content) callID(i int, id string) string {
	mapped := c.message.callID(i, id)
	if mapped != id {
		c.converted(i, Renamed, "call id "+brief(id))
	}
	return mapped
}

// leaveThoughts removes reasoning at the end of the message: providers refuse a message that ends in it.
func (c *content) leaveThoughts() {
	for len(c.items) > 0 && c.items[len(c.items)-1].kind == thought {
		c.converted(c.items[len(c.items)-1].block, LeftOut, "reasoning that nothing follows")
		c.items = c.items[:len(c.items)-1]
	}
}

// json is the items, separated by commas.
func (c *content) json() []byte {
	if len(c.items) == 1 {
		return c.items[0].json
	}
	size := 0
	for i := range c.items {
		size += len(c.items[i].json) + 1
	}
	out := make([]byte, 0, size)
	for i := range c.items {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, c.items[i].json...)
	}
	return out
}

// fragments is one fragment with the items, or nothing.
func (c *content) fragments(speaker string) []Fragment {
	if len(c.items) == 0 {
		return nothing(*c.message, c.conversions)
	}
	return []Fragment{{Message: *c.message, Speaker: speaker, JSON: c.json(), Conversions: c.conversions}}
}

// hollow reports whether a text is only whitespace. Whitespace is what Python, which providers use, takes for it: that
// includes U+001C to U+001F.
func hollow(s string) bool { return strings.TrimRightFunc(s, space) == "" }

func space(r rune) bool { return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f }

// brief shortens a name for a conversion or a description.
func brief(s string) string {
	const most = 40
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && s[cut]&0xc0 == 0x80 {
		cut--
	}
	return s[:cut] + "…"
}

// noReasoning is what is returned where a message has none. The APIs that want reasoning back refuse a message without any,
// also one of another model, and an empty text.
const noReasoning = " "

// returned is all reasoning of a message, for a model whose API wants it back.
func returned(m *Message) string {
	var texts []string
	for _, block := range m.Blocks {
		if isReturned(m, block) {
			texts = append(texts, block.(eventlog.Thinking).Text)
		}
	}
	return cmp.Or(strings.Join(texts, "\n"), noReasoning)
}

// isReturned reports whether a block of a message is reasoning that is returned as text.
func isReturned(m *Message, block eventlog.Block) bool {
	b, ok := block.(eventlog.Thinking)
	return ok && m.ReturnReasoning && b.Text != ""
}

// reasoningOf says whose reasoning it is that is left out.
func reasoningOf(t eventlog.Thinking, model string) string {
	by := provider.OfBlock(t, model)
	switch {
	case !t.Sealed():
		return "reasoning without a seal"
	case by == provider.Unknown:
		return "reasoning of an unknown model"
	case by == provider.Host:
		return "reasoning that a host of models sealed"
	default:
		return "reasoning of " + by.String()
	}
}

// nativeKind names what a provider's block is: its type, or the first of its members.
func nativeKind(b eventlog.ProviderBlock) string {
	var head struct {
		Type string `json:"type"`
	}
	if json.Unmarshal([]byte(b.JSON), &head) == nil && head.Type != "" {
		return brief(head.Type)
	}
	d := json.NewDecoder(strings.NewReader(b.JSON))
	if t, err := d.Token(); err == nil && t == json.Delim('{') {
		var value json.RawMessage
		first := ""
		for d.More() {
			name, err := d.Token()
			s, ok := name.(string)
			if err != nil || !ok || d.Decode(&value) != nil {
				break
			}
			if _, beside := geminiBeside[s]; !beside && s != "" {
				return brief(s)
			}
			first = cmp.Or(first, s)
		}
		if first != "" {
			return brief(first)
		}
	}
	return strings.TrimSpace(brief(b.Provider) + " block")
}

// foreign is the text that replaces a provider's block that the format cannot carry: the block's own text if it has
// one, or else a description.
func (c *content) foreign(i int, b eventlog.ProviderBlock) string {
	var said struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	}
	if json.Unmarshal([]byte(b.JSON), &said) == nil {
		switch said.Type {
		case "refusal":
			said.Text = said.Refusal
		case "text", "input_text", "output_text":
		default:
			said.Text = ""
		}
	}
	if hollow(said.Text) {
		return c.describe(i, nativeKind(b))
	}
	c.converted(i, LeftOut, "what "+said.Type+" has beside its text")
	return said.Text
}

// bareSignature returns the signature in a block of Google's that has nothing else: it belongs to the part that
// follows.
func bareSignature(b eventlog.ProviderBlock) (string, bool) {
	var only map[string]json.RawMessage
	if b.Provider != providerGoogle || json.Unmarshal([]byte(b.JSON), &only) != nil || len(only) != 1 {
		return "", false
	}
	var signature string
	err := json.Unmarshal(only["thoughtSignature"], &signature)
	return signature, err == nil && signature != ""
}

// systemText is what a block says in a system prompt, which is text alone.
func systemText(c *content, i int, block eventlog.Block) (string, bool) {
	switch b := block.(type) {
	case eventlog.Text:
		return b.Text, c.shown(i, b.Text)
	case eventlog.Media:
		return c.describe(i, describeMedia(b)), true
	case eventlog.ProviderBlock:
		return c.foreign(i, b), true
	case eventlog.Thinking:
		c.converted(i, LeftOut, reasoningOf(b, c.message.Model))
		return "", false
	default:
		return c.describe(i, "tool block"), true
	}
}
