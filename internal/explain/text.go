package explain

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

// search is what a caller searches for: a text, or the block that a pointer names.
type search struct {
	text    string
	pointer *eventlog.Place // nil for a text
}

func newSearch(text string) search {
	if seq, block, err := reduce.ParsePointer(text); err == nil {
		return search{text, &eventlog.Place{Seq: seq, Block: block}}
	}
	return search{text: text}
}

// held reports whether the block holds the text as it is in the log.
func (q search) held(b eventlog.Block) bool { return q.in(textsOf(b, asLogged)) }

// readIn reports whether the text can be read in one of the blocks, as sent at a place. Reasoning counts
// only if the format sent the block's text whole.
func (q search) readIn(sent *sentBytes, at eventlog.Place, blocks []eventlog.Block) bool {
	return slices.ContainsFunc(blocks, func(b eventlog.Block) bool {
		if !q.in(textsOf(b, asSent)) {
			return false
		}
		switch b := b.(type) {
		case eventlog.Thinking:
			return sent.of(at.Seq, b.Text)
		case eventlog.ToolResult:
			if reduce.BodyText(b) == reduce.InterruptedText { // belongs to no event: contextd made it up
				return sent.anywhere
			}
			return sent.found[at.Seq]
		default:
			return sent.found[at.Seq]
		}
	})
}

func (q search) in(texts []string) bool {
	return slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, q.text) })
}

// names reports whether text holds the pointer that is searched for. ctx:1.2 is not found in ctx:1.23.
func (q search) names(text string) bool {
	for {
		_, rest, ok := strings.Cut(text, q.text)
		if !ok || rest == "" || rest[0] < '0' || rest[0] > '9' {
			return ok
		}
		text = rest
	}
}

// asLogged and asSent return the JSON of a block as it is in the log, and as it is sent: without whitespace
// between its tokens.
func asLogged(raw string) string { return raw }

func asSent(raw string) string {
	var out bytes.Buffer
	if json.Compact(&out, []byte(raw)) != nil {
		return raw
	}
	return out.String()
}

// textsOf returns the texts that a block shows: its text, names and ids, its JSON (passed through standing),
// and the strings in that JSON, unescaped. Signatures and binary data are no text.
func textsOf(b eventlog.Block, standing func(raw string) string) []string {
	switch b := b.(type) {
	case eventlog.Text:
		return []string{b.Text}
	case eventlog.Thinking:
		return []string{b.Text}
	case eventlog.ToolCall:
		return append([]string{b.CallID, b.Name, standing(b.Arguments)}, stringsIn(b.Arguments)...)
	case eventlog.ToolResult:
		out := []string{b.CallID, b.ToolName}
		for _, c := range b.Content {
			out = append(out, textsOf(c, standing)...)
		}
		return out
	case eventlog.Media:
		return []string{b.MIMEType, b.URI}
	case eventlog.ProviderBlock:
		return append([]string{b.Provider, standing(b.JSON)}, stringsIn(b.JSON)...)
	default:
		return nil
	}
}

// stringsIn returns the strings and member names in a JSON text, unescaped, up to its first syntax error.
func stringsIn(raw string) []string {
	var out []string
	decoder := json.NewDecoder(strings.NewReader(raw))
	decoder.UseNumber()
	for {
		token, err := decoder.Token()
		if err != nil {
			return out
		}
		if s, ok := token.(string); ok {
			out = append(out, s)
		}
	}
}
