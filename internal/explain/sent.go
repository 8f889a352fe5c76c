package explain

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/render"
)

// sentBytes holds the texts that a model can read in the messages as sent in the provider's format.
type sentBytes struct {
	all []sentText
	// found maps each event that was sent to whether one of its messages has the text; anywhere says whether any
	// message has it.
	found    map[eventlog.Seq]bool
	anywhere bool
	// left are the blocks that the format omitted, described those that it replaced by a text.
	left, described map[eventlog.Place]bool
}

// sentText is one message: the events of which it was made, its texts, and whether they have the text that is
// searched for.
type sentText struct {
	seqs  []eventlog.Seq
	texts []string
	found bool
}

// readSent searches the messages for a text. The result is unusable if ctx has ended.
func readSent(ctx context.Context, messages []render.Encoded, text string) sentBytes {
	s := sentBytes{make([]sentText, len(messages)), map[eventlog.Seq]bool{}, false, map[eventlog.Place]bool{}, map[eventlog.Place]bool{}}
	for i := range messages {
		if ctx.Err() != nil {
			return s
		}
		m := &messages[i]
		s.all[i] = sentText{seqs: m.Seqs, texts: readable(m.JSON)}
		s.all[i].found = s.all[i].holds(text)
		s.anywhere = s.anywhere || s.all[i].found
		for _, seq := range m.Seqs {
			s.found[seq] = s.found[seq] || s.all[i].found
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

// of reports whether a message made of event seq holds the text.
func (s *sentBytes) of(seq eventlog.Seq, text string) bool {
	return slices.ContainsFunc(s.all, func(m sentText) bool { return slices.Contains(m.seqs, seq) && m.holds(text) })
}

func (m *sentText) holds(text string) bool {
	return slices.ContainsFunc(m.texts, func(s string) bool { return strings.Contains(s, text) })
}

// gone reports whether the format omitted a block, and none of its texts is in the event's messages.
func (s *sentBytes) gone(at eventlog.Place, b eventlog.Block) bool {
	if _, sent := s.found[at.Seq]; !sent {
		return true
	}
	return s.left[at] && !slices.ContainsFunc(textsOf(b, asSent), func(t string) bool {
		t = strings.TrimSpace(t)
		return t != "" && s.of(at.Seq, t)
	})
}

// unreadable are the members that hold no text for a model: names of kinds, and sealed or binary data.
var unreadable = map[string]bool{
	"type": true, "role": true, "status": true,
	"signature": true, "encrypted_content": true, "redacted_data": true, "data": true, "thoughtSignature": true, "thought_signature": true, "thought_signatures": true,
	"file_data": true,
}

// standsAsJSON are the members that a model reads as JSON, or as a string of it: arguments and results.
var standsAsJSON = map[string]bool{
	"input": true, "args": true, "arguments": true, "arguments_json": true, "response": true, "json": true,
}

// readable returns the texts in a message: all strings except opaque ones, and the JSON of arguments. It takes one
// pass, so deep JSON costs no more.
func readable(raw []byte) []string {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var out []string
	_ = readTexts(d, &out) // malformed JSON: the texts before the error count
	return out
}

// readTexts reads the texts of the next value.
func readTexts(d *json.Decoder, out *[]string) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	switch token := token.(type) {
	case string:
		if !strings.HasPrefix(token, "data:") {
			*out = append(*out, token)
		}
		return nil
	case json.Delim:
		for d.More() {
			if token == '{' {
				err = readMember(d, out)
			} else {
				err = readTexts(d, out)
			}
			if err != nil {
				return err
			}
		}
		_, err = d.Token()
		return err
	default:
		return nil
	}
}

func readMember(d *json.Decoder, out *[]string) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	name, _ := token.(string)
	if !unreadable[name] && !standsAsJSON[name] {
		return readTexts(d, out)
	}
	var value json.RawMessage
	if err := d.Decode(&value); err != nil || unreadable[name] {
		return err
	}
	var text string
	if json.Unmarshal(value, &text) != nil {
		text = string(value)
	}
	*out = append(append(*out, text), stringsIn(text)...)
	return nil
}

// readableOf returns the texts of a block that a model can read.
func readableOf(b eventlog.Block) []string {
	if p, ok := b.(eventlog.ProviderBlock); ok {
		return readable([]byte(p.JSON))
	}
	return textsOf(b, asLogged)
}

const addedText = "contextd added it"

// formatted adds sightings of texts that rendering itself wrote, such as the description of an image: a message has
// the text, but no sighting in a block of its events was sent.
func (x *explainer) formatted() {
	seen := map[eventlog.Seq]bool{}
	for _, s := range x.sightings {
		seen[s.Seq] = seen[s.Seq] || s.Seen
	}
	for i := range x.sent.all {
		m := &x.sent.all[i]
		if len(m.seqs) == 0 || seen[0] || !m.found || slices.ContainsFunc(m.seqs, func(seq eventlog.Seq) bool { return seen[seq] }) {
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
