package explain

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/render"
)

// sentBytes is what can be read in the messages as their format sent them.
type sentBytes struct {
	all []sentText
	// at leads from an event to the messages that are of it.
	at map[eventlog.Seq][]int
	// left and described are the blocks that the format left out, or put a text for.
	left, described map[eventlog.Place]bool
}

// sentText is one message: its events, and the texts in it.
type sentText struct {
	seqs  []eventlog.Seq
	texts []string
}

func readSent(messages []render.Encoded) sentBytes {
	s := sentBytes{make([]sentText, len(messages)), map[eventlog.Seq][]int{}, map[eventlog.Place]bool{}, map[eventlog.Place]bool{}}
	for i := range messages {
		m := &messages[i]
		s.all[i] = sentText{m.Seqs, readable(m.JSON)}
		for _, seq := range m.Seqs {
			s.at[seq] = append(s.at[seq], i)
		}
		for _, c := range m.Conversions {
			switch at := (eventlog.Place{Seq: c.Seq, Block: c.Block}); c.Kind {
			case render.LeftOut:
				s.left[at] = true
			case render.Described:
				s.described[at] = true
			}
		}
	}
	return s
}

// anywhere reports whether any message holds a text.
func (s *sentBytes) anywhere(text string) bool {
	return slices.ContainsFunc(s.all, func(m sentText) bool { return m.holds(text) })
}

// of reports whether a message of an event holds a text.
func (s *sentBytes) of(seq eventlog.Seq, text string) bool {
	return slices.ContainsFunc(s.at[seq], func(i int) bool { return s.all[i].holds(text) })
}

func (m *sentText) holds(text string) bool {
	return slices.ContainsFunc(m.texts, func(s string) bool { return strings.Contains(s, text) })
}

// gone reports whether the format left a block out, and nothing of it can be read.
func (s *sentBytes) gone(at eventlog.Place, b eventlog.Block) bool {
	if len(s.at[at.Seq]) == 0 {
		return true
	}
	return s.left[at] && !slices.ContainsFunc(textsOf(b, asSent), func(t string) bool {
		t = strings.TrimSpace(t)
		return t != "" && s.of(at.Seq, t)
	})
}

// Members that hold no text: names of kinds, and what is sealed or binary.
var unreadable = map[string]bool{
	"type": true, "role": true, "status": true,
	"signature": true, "encrypted_content": true, "redacted_data": true, "data": true, "thoughtSignature": true, "thought_signature": true,
	"file_data": true,
}

// Members whose JSON a model reads unchanged, or as a string: arguments and results.
var standsAsJSON = map[string]bool{
	"input": true, "args": true, "arguments": true, "arguments_json": true, "response": true, "json": true,
}

// readable are the texts in a message: all strings but those that are opaque, and the JSON
// of arguments.
func readable(raw []byte) []string {
	var out []string
	var walk func(raw json.RawMessage)
	walk = func(raw json.RawMessage) {
		raw = bytes.TrimSpace(raw)
		if len(raw) == 0 {
			return
		}
		switch raw[0] {
		case '"':
			var s string
			if json.Unmarshal(raw, &s) == nil && !strings.HasPrefix(s, "data:") {
				out = append(out, s)
			}
		case '[':
			var all []json.RawMessage
			if json.Unmarshal(raw, &all) == nil {
				for _, one := range all {
					walk(one)
				}
			}
		case '{':
			var members map[string]json.RawMessage
			if json.Unmarshal(raw, &members) != nil {
				return
			}
			for name, value := range members {
				switch {
				case unreadable[name]:
				case standsAsJSON[name]:
					text := string(value)
					if json.Unmarshal(value, &text) != nil {
						text = string(value)
					}
					out = append(append(out, text), stringsIn(text)...)
				default:
					walk(value)
				}
			}
		}
	}
	walk(raw)
	return out
}

// readableOf are the texts of a block that a model can read.
func readableOf(b eventlog.Block) []string {
	if p, ok := b.(eventlog.ProviderBlock); ok {
		return readable([]byte(p.JSON))
	}
	return textsOf(b, asLogged)
}

const addedText = "contextd added it"

// formatted adds what rendering wrote into messages, such as a description of an image:
// where a message holds the text and none of its blocks does.
func (x *explainer) formatted() {
	seen := map[eventlog.Seq]bool{}
	for _, s := range x.sightings {
		seen[s.Seq] = seen[s.Seq] || s.Seen
	}
	for i := range x.sent.all {
		m := &x.sent.all[i]
		if len(m.seqs) == 0 || seen[0] || !m.holds(x.text) || slices.ContainsFunc(m.seqs, func(seq eventlog.Seq) bool { return seen[seq] }) {
			continue
		}
		own := Sighting{Seq: m.seqs[0], Shown: ShownVerbatim, Seen: true, Reason: addedText, Pointer: reduce.Pointer(m.seqs[0], 0)}
		at, found := slices.BinarySearchFunc(x.sightings, own, func(a, b Sighting) int {
			return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Block, b.Block))
		})
		switch {
		case found:
			x.sightings[at].Seen, x.sightings[at].Reason = true, addedText
		case len(x.sightings) < maxSightings:
			x.sightings = slices.Insert(x.sightings, at, own)
		}
	}
}
