package pi

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// write writes a transcript as a session file. Branches that were read from a file return to their positions.
// Subagents' conversations, for which pi has no place, are omitted with a warning.
func write(out io.Writer, t transcript.Transcript, o transcript.WriteOptions) (transcript.WriteReport, error) {
	w := &fileWriter{written: map[string]bool{}}
	var main transcript.Session
	if len(t.Sessions) > 0 {
		main = t.Sessions[0]
	}
	envelopes := transcript.EnvelopesOf(Name, main)
	entries := append([]jsontext.Value{w.header(main, envelopes.Session, o)}, w.session(main, envelopes)...)
	left, added := 0, 0
	if envelopes.Session == "" {
		added = 1 // the header, which the original file did not have
	}
	if len(t.Sessions) > 1 {
		for _, s := range t.Sessions[1:] {
			if where := s.Labels[labelEntries]; where != "" {
				entries = merge(entries, w.session(s, transcript.EnvelopesOf(Name, s)), where, added)
			} else {
				left++
			}
		}
	}
	if left > 0 {
		w.report.Warn("other conversations of the transcript, which have files of their own in pi, are left out")
	}
	var file bytes.Buffer
	for _, e := range entries {
		file.Write(e)
		file.WriteByte('\n')
	}
	w.report.Entries = len(entries)
	return w.report.Finish(out, file.Bytes())
}

// merge inserts a branch's entries at the positions that where lists, which are moved by added. The last
// entry stays the last.
func merge(entries, own []jsontext.Value, where string, added int) []jsontext.Value {
	at := positions(where, len(own))
	out := make([]jsontext.Value, 0, len(entries)+len(own))
	rest := entries
	for i, e := range own {
		for len(rest) > 1 && i < len(at) && len(out) < at[i]+added {
			out, rest = append(out, rest[0]), rest[1:]
		}
		out = append(out, e)
	}
	return append(out, rest...)
}

type fileWriter struct {
	report transcript.WriteReport
	// written are the ids of the events whose entries the file has, of all sessions.
	written map[string]bool
	old     bool // the file is of version 1, where compactions name positions
}

func (w *fileWriter) header(s transcript.Session, difference string, o transcript.WriteOptions) jsontext.Value {
	id := s.Labels[transcript.LabelSessionID]
	if id == "" {
		id = transcript.SessionID(s)
	}
	began := transcript.OrEpoch(transcript.Began(s))
	v := header(id, o.Directory(s.Labels), string(transcript.Stamp(began)), "parentSession", transcript.Optional(s.Labels[transcript.LabelParentSession]))
	raw := w.report.Amend(v, difference)
	if o.SessionID != "" {
		// Another session's name would otherwise be resumed under this id.
		raw = w.report.Amend(raw, `{"set":{"id":`+transcript.Quote(o.SessionID)+`}}`)
	}
	version, stated := transcript.MemberOf(raw, "version")
	w.old = !stated || string(version) == "1"
	return raw
}

// versioned adapts a new entry to the file's version: in version 1 entries have no ids, and a null parent
// would begin a new tree for the reader.
func (w *fileWriter) versioned(raw []byte) jsontext.Value {
	if !w.old {
		return raw
	}
	return w.report.Amend(raw, `{"del":["id","parentId"]}`)
}

// fitting reports whether a custom event's JSON can be an entry of the file.
func fitting(raw string) bool {
	_, ok := transcript.MemberOf([]byte(raw), "type")
	return ok && transcript.Valid([]byte(raw))
}

// own reports whether pi wrote a compaction.
func own(c *eventlog.Compaction) bool {
	var native struct {
		Type    transcript.Word `json:"type"`
		Summary jsontext.Value  `json:"summary"`
		Index   jsontext.Value  `json:"firstKeptEntryIndex"`
		First   jsontext.Value  `json:"firstKeptEntryId"`
	}
	return transcript.Decode([]byte(c.NativeJSON), &native) == nil && // NativeJSON may be any bytes
		native.Type == "compaction" && len(native.Summary)+len(native.Index)+len(native.First) > 0
}

// cutType splits off the prefix of pi's custom events; mine is false for others.
func cutType(kind string) (rest string, mine bool) {
	return strings.CutPrefix(strings.TrimPrefix(kind, "harness."), Name+".")
}

// isReplacement reports whether the custom event holds the entry of another event, from which that entry was
// written already.
func (w *sessionWriter) isReplacement(e *eventlog.Event, kind string) bool {
	id, besides := strings.CutSuffix(strings.TrimRight(e.ID, "+"), "/"+kind)
	_, written := w.native[id]
	return besides && written
}

// sessionWriter writes the entries of one path through the tree.
type sessionWriter struct {
	file      *fileWriter
	render    renderer
	envelopes transcript.Envelopes
	held      map[string]*eventlog.Custom // whole entries that the reader kept, by the event that is a part of one
	native    map[string]string           // event id: id of its entry
	line      map[string]int              // event id: position of its entry in the file
	sent      []string                    // ids of the events whose entries the model sees, in order
	// parts are the ids of further events that an entry holds, by the id of its first event.
	parts map[string][]string
	// places are the indexes in sent of the entries that hold an event.
	places  map[string][]int
	entries []jsontext.Value
	shared  int // how many of its entries the file has from another branch
	// said are the entries by event id. again is how many of sent come before the last compaction after which
	// kept entries were repeated.
	said  map[string]jsontext.Value
	again int
}

// session returns the entries that the file does not have yet.
func (w *fileWriter) session(s transcript.Session, envelopes transcript.Envelopes) []jsontext.Value {
	sw := &sessionWriter{
		file: w, envelopes: envelopes, held: transcript.Held(Name, s.Events),
		native: map[string]string{}, line: map[string]int{}, parts: map[string][]string{}, places: map[string][]int{},
		said: map[string]jsontext.Value{},
	}
	sw.render.warn = w.report.Warn
	events := sw.answered(s.Events)
	for i := 0; i < len(events); {
		i += sw.next(events[i:])
	}
	return slices.Clip(sw.entries)
}

// answered moves messages that came while calls ran to after the results of those: pi sends entries in their
// order, and takes a call as interrupted if something other than its result follows. Messages that were read
// from pi stay where they are.
func (w *sessionWriter) answered(events []eventlog.Event) []eventlog.Event {
	out := make([]eventlog.Event, 0, len(events))
	var said []eventlog.Event
	open, reply := map[string]bool{}, ""
	settle := func() {
		out, said = append(out, said...), nil
		clear(open)
	}
	for _, e := range events {
		m, ok := e.Body.(*eventlog.Message)
		_, compacted := e.Body.(*eventlog.Compaction)
		read := w.envelopes.Entries[e.ID] != "" || w.held[e.ID] != nil
		switch {
		case compacted, ok && m.Role == eventlog.RoleAssistant && (m.GroupID == "" || m.GroupID != reply):
			settle()
		case ok && !read && len(open) > 0 && (m.Role == eventlog.RoleUser || m.Role == eventlog.RoleSystem):
			said = append(said, e)
			continue
		}
		out = append(out, e)
		if !ok {
			continue
		}
		if m.Role == eventlog.RoleAssistant {
			reply = m.GroupID
		}
		for _, b := range m.Blocks {
			switch b := b.(type) {
			case eventlog.ToolCall:
				open[b.CallID] = true
			case eventlog.ToolResult:
				delete(open, b.CallID)
			}
		}
		if len(open) == 0 {
			settle()
		}
	}
	return append(out, said...)
}

// next writes the first event, and further ones if they are one reply with it. It returns how many events it
// used.
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

// reply writes the parts of a reply as one entry, and then the results and other events that were among them.
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
	// Several results, or results and other blocks, become an entry each.
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

// write adds the entry of events that are one message.
func (w *sessionWriter) write(events []eventlog.Event) {
	first := &events[0]
	for _, e := range events[1:] {
		w.parts[first.ID] = append(w.parts[first.ID], e.ID)
	}
	if whole := w.held[first.ID]; whole != nil && fitting(whole.JSON) {
		w.add(first, transcript.Compacted([]byte(whole.JSON)))
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
	w.add(first, w.file.report.Amend(base, difference))
}

// add records an entry, and adds it to the file unless another branch did.
func (w *sessionWriter) add(e *eventlog.Event, raw jsontext.Value) {
	id := ""
	if member, ok := transcript.MemberOf(raw, "id"); ok {
		id, _ = transcript.Text(member)
	}
	w.render.wrote(id, e.Time)
	w.native[e.ID] = id
	w.line[e.ID] = len(w.entries) + w.shared + 1
	if _, ok := e.Body.(*eventlog.Message); ok {
		for _, id := range append([]string{e.ID}, w.parts[e.ID]...) {
			w.places[id] = append(w.places[id], len(w.sent))
		}
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
		w.add(e, transcript.Compacted([]byte(c.JSON)))
	}
}
