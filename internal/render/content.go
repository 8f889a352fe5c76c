package render

import (
	"encoding/json"
	"strings"
	"unicode"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/provider"
)

// content gathers what the blocks of one message become.
type content struct {
	message *Message
	// maker is the model that wrote an assistant's message, as far as it is known.
	maker string
	// citing is what is decided of citations in the request.
	citing      citing
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

// add appends an item; what has no JSON is none.
func (c *content) add(kind itemKind, block int, json []byte) {
	if json == nil {
		return
	}
	c.items = append(c.items, item{kind, block, json})
}

// converted notes that block i was not carried as it was.
func (c *content) converted(i int, kind ConversionKind, what string) {
	at := c.message.place(i)
	c.conversions = append(c.conversions, Conversion{Seq: at.Seq, Block: at.Block, Kind: kind, What: what})
}

// describe notes that a text replaces block i, or for a part of it, and returns the text.
func (c *content) describe(i int, what string) string {
	c.converted(i, Described, what)
	return description(what, c.message.place(i), c.message.Recall)
}

// shown reports whether text can be said. What is empty is left out without a word.
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

// leaveThoughts takes away the reasoning at the end, which leads to nothing: providers
// refuse a message that ends in it.
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

// hollow reports whether there is nothing but whitespace, as Python has it, in which
// providers look: the separators U+001C to U+001F belong to it.
func hollow(s string) bool { return strings.TrimRightFunc(s, space) == "" }

func space(r rune) bool { return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f }

// brief cuts what a conversion or a description names.
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

// reasoningOf says whose reasoning a block is that is left out.
func reasoningOf(t eventlog.Thinking, model string) string {
	by := provider.OfBlock(t, model)
	switch {
	case !t.Sealed():
		return "reasoning without a seal"
	case by == provider.Unknown:
		return "reasoning of an unknown model"
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
		if name, err := d.Token(); err == nil {
			if s, ok := name.(string); ok && s != "" {
				return brief(s)
			}
		}
	}
	return strings.TrimSpace(brief(b.Provider) + " block")
}

// foreign is the text that replaces a provider's block that the format does not carry:
// what the block says, if it is a text with something beside it, or else what it is.
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

// bareSignature is the signature in a block of Google's that holds nothing else: it
// belongs to what follows.
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
