package pi

import (
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// sessionWriter writes the entries of one way through the tree.
type sessionWriter struct {
	file      *fileWriter
	render    renderer
	envelopes transcript.Envelopes
	replaced  map[string]string
	native    map[string]string // event id: the id of its entry
	line      map[string]int    // event id: the position of its entry
	sent      []string          // events whose entries the model sees, in order
	// parts are the events that an entry holds besides the one that names it.
	parts   map[string][]string
	entries []jsontext.Value
	shared  int // how many entries of it are in the file already
	// said are the entries of sent, and again how many of these came before the last
	// compaction that has what it kept said again.
	said  map[string]jsontext.Value
	again int
}

// session returns the entries that are not in the file yet.
func (w *fileWriter) session(s transcript.Session) []jsontext.Value {
	sw := &sessionWriter{
		file: w, envelopes: transcript.EnvelopesOf(Name, s), replaced: replaced(s),
		native: map[string]string{}, line: map[string]int{}, parts: map[string][]string{},
		said: map[string]jsontext.Value{},
	}
	sw.render.warn = w.report.Warn
	for i := 0; i < len(s.Events); {
		i += sw.next(s.Events[i:])
	}
	return slices.Clip(sw.entries)
}

// next writes the first event, and others that are one reply with it; it returns
// how many events it has dealt with.
func (w *sessionWriter) next(events []eventlog.Event) int {
	e := &events[0]
	switch b := e.Body.(type) {
	case *eventlog.Message:
		if b.Role == eventlog.RoleAssistant && b.GroupID != "" {
			return w.reply(events, b.GroupID)
		}
		w.message(e, b)
	case *eventlog.Compaction:
		w.compaction(e, b)
	case *eventlog.Custom:
		w.custom(e, b)
	case *eventlog.Reminder:
		w.file.report.Warn("reminders, which live for some turns only, are left out")
	}
	return 1
}

// reply writes the parts of a reply as one entry, and after it the results that
// are among them.
func (w *sessionWriter) reply(events []eventlog.Event, group string) int {
	var parts, between []eventlog.Event
	last := 0
	for i := range events {
		m, ok := events[i].Body.(*eventlog.Message)
		if ok && m.Role == eventlog.RoleAssistant && m.GroupID == group {
			parts, last = append(parts, events[i]), i
		} else if ok && m.Role != eventlog.RoleTool {
			break
		}
	}
	n := last + 1
	for i := range events[:n] {
		if m, ok := events[i].Body.(*eventlog.Message); !ok || m.Role != eventlog.RoleAssistant {
			between = append(between, events[i])
		}
	}
	w.write(parts)
	for i := range between {
		w.next(between[i:])
	}
	return n
}

func (w *sessionWriter) message(e *eventlog.Event, m *eventlog.Message) {
	results, rest := 0, []eventlog.Block(nil)
	for _, b := range m.Blocks {
		if _, ok := b.(eventlog.ToolResult); ok {
			results++
		} else {
			rest = append(rest, b)
		}
	}
	if results == 0 || len(m.Blocks) == 1 {
		w.write([]eventlog.Event{*e})
		return
	}
	// Several results, or results with a message, are entries of their own.
	n := 0
	for _, b := range m.Blocks {
		if _, ok := b.(eventlog.ToolResult); !ok {
			continue
		}
		one := *e
		if n++; n > 1 || len(rest) > 0 {
			one.ID += "/result-" + strconv.Itoa(n)
			w.parts[one.ID] = []string{e.ID}
		}
		one.Body = &eventlog.Message{Role: eventlog.RoleTool, Blocks: []eventlog.Block{b}}
		w.write([]eventlog.Event{one})
	}
	if len(rest) > 0 {
		one := *e
		one.Body = &eventlog.Message{Role: m.Role, Blocks: rest, Model: m.Model}
		w.write([]eventlog.Event{one})
	}
}

// write writes the entry of events that are one message.
func (w *sessionWriter) write(events []eventlog.Event) {
	first := &events[0]
	for _, e := range events[1:] {
		w.parts[first.ID] = append(w.parts[first.ID], e.ID)
	}
	if whole, ok := w.replaced[first.ID]; ok {
		w.add(first, []byte(whole))
		return
	}
	base, ok := w.render.entry(events)
	if !ok {
		w.file.report.Warn("a message that pi cannot hold is left out")
		return
	}
	difference, read := w.envelopes.Entries[first.ID]
	if !read {
		w.add(first, w.file.versioned(base))
		return
	}
	w.add(first, w.file.amend(base, difference))
}

// add puts an entry into the file, unless another branch has put it there.
func (w *sessionWriter) add(e *eventlog.Event, raw jsontext.Value) {
	id := ""
	if member, ok := transcript.MemberOf(raw, "id"); ok {
		id, _ = transcript.Text(member)
	}
	w.render.wrote(id, e.Time)
	w.native[e.ID] = id
	w.line[e.ID] = len(w.entries) + w.shared + 1
	if _, ok := e.Body.(*eventlog.Message); ok {
		w.sent = append(w.sent, e.ID)
		w.said[e.ID] = raw
	}
	if _, ok := e.Body.(*eventlog.Compaction); ok {
		w.file.report.Compactions++
	}
	w.put(e.ID, raw)
}

func (w *sessionWriter) custom(e *eventlog.Event, c *eventlog.Custom) {
	if w.envelopes.Holds(c) {
		return
	}
	kind, mine := cutType(c.Type)
	switch {
	case !mine:
		w.file.report.Warn("events of type %.100s, which pi has no entry for, are left out", c.Type)
	case !fitting(c.JSON):
		w.file.report.Warn("events of type %.100s are no entries of pi and are left out", c.Type)
	case w.isReplacement(e, kind):
	default:
		w.add(e, []byte(transcript.Compact([]byte(c.JSON))))
	}
}
