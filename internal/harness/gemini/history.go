package gemini

import (
	"io"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
)

// history collects the messages of a file before they become events, because a later line may replace a
// message or remove several.
type history struct {
	out    *transcript.Builder
	reader *reader
	items  []item
	at     map[string]int // index in items by message id
	first  map[string]int // index in items of the first message in shown with an id
	shown  []int          // indices of the messages that the harness has in its list now
	// lines is how many objects were read so far.
	lines int
}

// item is a message, or a boundary with a short form of its line and the ids of the messages that it keeps.
// raw is nil for a removed message.
type item struct {
	id       string
	raw      jsontext.Value
	line     int
	boundary bool
	kept     []string
}

func (h *history) read(in io.Reader) error {
	doc := transcript.NewDocument(in, h.out.Warn)
	return doc.Each(func(kind byte) (bool, error) {
		if kind != '{' {
			h.out.Warn(doc.Line(), "the file does not hold an object")
			return false, nil
		}
		h.lines++
		return true, h.object(doc)
	})
}

// object reads the members of a line, or of a file that is one object.
func (h *history) object(doc *transcript.Document) error {
	first := doc.Line()
	var names []string
	values := map[string]jsontext.Value{}
	for doc.More() {
		name, err := doc.Key()
		if err == nil && name == "messages" {
			_, err = doc.List(h.message)
		} else if err == nil {
			var value jsontext.Value
			if value, _, err = doc.Value(); err == nil {
				if _, twice := values[name]; !twice {
					names = append(names, name)
				}
				values[name] = value
			}
		}
		if err != nil {
			// An incomplete message is dropped; members that describe the session are read.
			if _, message := values["type"]; !message {
				h.fields(names, values, first)
			}
			return err
		}
	}
	h.fields(names, values, first)
	return doc.Close()
}

// fields reads the members of a line: a change, a message, or fields of the session.
func (h *history) fields(names []string, values map[string]jsontext.Value, line int) {
	if raw, ok := values["$rewindTo"]; ok {
		id, _ := transcript.Text(raw)
		h.rewind(id)
		return
	}
	if raw, ok := values["$set"]; ok {
		h.set(raw, line)
		return
	}
	_, id := values["id"]
	_, kind := values["type"]
	if id && kind {
		raw := []byte{'{'}
		for i, name := range names {
			if i > 0 {
				raw = append(raw, ',')
			}
			raw = append(append(raw, transcript.Quote(name)+":"...), values[name]...)
		}
		h.message(append(raw, '}'), line)
		return
	}
	for _, name := range names {
		h.reader.field(name, values[name])
	}
}

// message adds a message. On later lines a message replaces the one with the same id: the harness writes a
// reply again as it grows.
func (h *history) message(raw jsontext.Value, line int) {
	id := idOf(raw)
	if i, ok := h.at[id]; ok && id != "" && id != "REDACTED" && h.lines > 1 {
		h.items[i].raw = raw
		h.out.Skip("earlier state of a message")
		return
	}
	h.at[id] = len(h.items)
	if _, again := h.first[id]; !again {
		h.first[id] = len(h.items)
	}
	h.shown = append(h.shown, len(h.items))
	h.items = append(h.items, item{id: id, raw: raw, line: line})
}

func idOf(message jsontext.Value) string {
	value, _ := transcript.MemberOf(message, "id")
	id, _ := transcript.Text(value)
	return id
}

// rewind removes the message with the id and all after it; for an unknown id it removes all.
func (h *history) rewind(id string) {
	from := 0
	if first, ok := h.first[id]; ok {
		from, _ = slices.BinarySearch(h.shown, first)
	}
	h.takeBack(from)
}

// takeBack removes the messages of the harness's list from the one with this position on.
func (h *history) takeBack(from int) {
	for _, i := range h.shown[from:] {
		h.items[i].raw = nil
		delete(h.at, h.items[i].id)
		if h.first[h.items[i].id] == i {
			delete(h.first, h.items[i].id)
		}
		h.out.Skip("message taken back")
	}
	h.shown = h.shown[:from]
}

// set reads changes of the session's fields. A list of messages among them replaces the one before.
func (h *history) set(raw jsontext.Value, line int) {
	var members map[string]jsontext.Value
	if err := transcript.Decode(raw, &members); err != nil {
		h.out.Warn(line, "unexpected shape of a change, not read: %v", err)
		return
	}
	var list []jsontext.Value
	if messages, ok := members["messages"]; ok {
		if err := transcript.Decode(messages, &list); err != nil {
			h.out.Warn(line, "unexpected shape of a list of messages, not read: %v", err)
		} else {
			h.replace(list, line)
		}
	}
	h.out.Skip("change of the session")
}

// replace makes a list the harness's. If the list lacks earlier messages, it adds a boundary, and then those
// messages that are new; if it lacks the last ones and has none that are new, these were taken back.
func (h *history) replace(list []jsontext.Value, line int) {
	old := map[string]bool{}
	for _, i := range h.shown {
		old[h.items[i].id] = true
	}
	listed, fresh := map[string]bool{}, false
	for _, m := range list {
		id := idOf(m)
		listed[id] = true
		fresh = fresh || !old[id]
	}
	var kept, gone []string
	var left []int
	first := len(h.shown)
	for n, i := range h.shown {
		if listed[h.items[i].id] {
			kept, left = append(kept, h.items[i].id), append(left, i)
		} else {
			first = min(first, n)
			gone = append(gone, h.items[i].id)
		}
	}
	switch {
	case len(left) == len(h.shown):
	case !fresh && len(left) == first:
		h.takeBack(first)
	default:
		h.items = append(h.items, item{
			line: line, boundary: true, kept: kept, raw: jsontext.Value(`{"$set":{"messages":` + strconv.Itoa(len(list)) + `}}`),
		})
		h.shown = left
		for _, id := range gone {
			delete(h.first, id)
		}
	}
	for _, m := range list {
		h.message(m, line)
	}
}
