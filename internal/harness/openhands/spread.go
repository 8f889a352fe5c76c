package openhands

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
)

// spread reports whether the first value of a file spans several lines.
func spread(text []byte) bool {
	end := int64(bytes.IndexByte(text, '\n'))
	if end < 0 {
		return false
	}
	dec := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		if _, err := dec.ReadToken(); err != nil || dec.StackDepth() == 0 && dec.InputOffset() <= end {
			return false
		}
		if dec.InputOffset() > end {
			return true
		}
	}
}

// object reads a run that spans lines, one event at a time. Its other members may come before or after the
// events.
func (r *reader) object(doc *transcript.Document) error {
	var c *conversation
	var instance jsontext.Value
	n := 0
	event := func(raw jsontext.Value, line int) {
		if c == nil {
			c = r.next()
		}
		n++
		c.add(raw, line, n)
	}
	for doc.More() {
		name, err := doc.Key()
		if err == nil && name == "history" {
			_, err = doc.List(event)
		} else if err == nil {
			var value jsontext.Value
			if value, _, err = doc.Value(); name == "instance_id" {
				instance = value
			}
		}
		if err != nil {
			c.identify(instance)
			return err
		}
	}
	c.identify(instance)
	if c == nil {
		r.out.Warn(doc.Line(), "a run without a history was not read")
	}
	return doc.Close()
}

// next starts the next conversation of the file.
func (r *reader) next() *conversation {
	r.conversations++
	if r.conversations > 1 {
		return r.conversation(strconv.Itoa(r.conversations))
	}
	return r.conversation("")
}

// identify labels the session of a run with its id; c is nil if the run has no events.
func (c *conversation) identify(instance jsontext.Value) {
	if c != nil {
		id, _ := transcript.Text(instance)
		c.session.Label(transcript.LabelSessionID, id)
	}
}
