package opencode

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// write writes the main session of a transcript as a file that OpenCode imports. It omits subagents'
// conversations, which would be files of their own, with a warning.
func write(out io.Writer, t transcript.Transcript, o transcript.WriteOptions) (transcript.WriteReport, error) {
	var s transcript.Session
	if len(t.Sessions) > 0 {
		s = t.Sessions[0]
	}
	w := newWriter(s, o)
	for i := 0; i < len(s.Events); {
		i += w.next(s.Events[i:])
	}
	if len(t.Sessions) > 1 {
		w.report.Warn("other conversations of the transcript, which have files of their own in opencode, are left out")
	}
	w.report.Entries = len(w.messages) + 1
	return w.report.Finish(out, append(transcript.Object("info", w.info, "messages", w.messages), '\n'))
}

type writer struct {
	report    transcript.WriteReport
	info      jsontext.Value
	messages  []jsontext.Value
	native    renderer // makes the bases of the reader's differences
	foreign   renderer // for messages that were not read from the harness
	envelopes transcript.Envelopes
	results   map[string]result
	ids       map[string]string // event id without its parts: message id
	owner     map[string]string // event id: id of the message with its content
	places    map[string][]int  // the indexes of a message in sent
	sent      []string          // ids of the messages with events' content, in order
	said      map[string]jsontext.Value
	compacted int // how many of sent come before the last compaction
	last      time.Time
}

func newWriter(s transcript.Session, o transcript.WriteOptions) *writer {
	w := &writer{
		envelopes: transcript.EnvelopesOf(Name, s), results: resultsOf(s.Events),
		ids: map[string]string{}, owner: map[string]string{}, places: map[string][]int{}, said: map[string]jsontext.Value{},
	}
	id, directory := s.Labels[transcript.LabelSessionID], s.Labels[transcript.LabelWorkingDirectory]
	switch {
	case strings.HasPrefix(o.SessionID, sessionPrefix):
		id = o.SessionID
	case o.SessionID != "":
		id = sessionPrefix + "_" + o.SessionID // opencode takes no id that begins otherwise
	case id == "", !strings.HasPrefix(id, sessionPrefix) && w.envelopes.Session == "":
		id = makeID(sessionPrefix, transcript.Began(s), 0, id+transcript.SessionID(s))
	}
	w.native = renderer{session: id, directory: directory, metadata: true, warn: w.report.Warn, placed: w.placed}
	w.foreign = w.native
	w.foreign.complete, w.foreign.id = true, w.messageID
	directory = o.Directory(s.Labels)
	w.foreign.directory = directory
	for _, e := range s.Events {
		if m, ok := e.Body.(*eventlog.Message); ok && m.Model != "" {
			w.foreign.model = m.Model
			break
		}
	}
	w.session(s, id, directory)
	return w
}

// session makes the file's info.
func (w *writer) session(s transcript.Session, id, directory string) {
	parent := s.Labels[transcript.LabelParentSession]
	if w.envelopes.Session != "" || s.Labels[transcript.LabelHarness] == Name {
		base := sessionInfo(id, s.Labels[transcript.LabelVersion], s.Labels[transcript.LabelWorkingDirectory], parent)
		w.info = w.report.Amend(base, w.envelopes.Session)
		return
	}
	w.info = sessionInfo(id, "1.0.0", directory, "")
	at, ended := transcript.Began(s), transcript.Began(s)
	for _, e := range s.Events {
		if e.Time.After(ended) {
			ended = e.Time
		}
	}
	w.info = transcript.With(w.info, "slug", "contextd-"+strings.ToLower(name(id)), "projectID", "global", "title", "Session "+id,
		"time", transcript.Object("created", millis(at), "updated", millis(ended)))
}

// messageID returns the event's own message id if it has the harness's form, or one derived from its time and
// position.
func (w *writer) messageID(e *eventlog.Event) string {
	key := messageID(e.ID)
	if strings.HasSuffix(e.ID, "/summary") {
		key = e.ID
	}
	if id, ok := w.ids[key]; ok {
		return id
	}
	id := key
	if !ownID(key) {
		if e.Time.After(w.last) {
			w.last = e.Time
		}
		id = makeID(messagePrefix, w.last, len(w.ids)+1, key)
	}
	w.ids[key] = id
	return id
}

// newID returns the id of a further message that an event becomes.
func (w *writer) newID(e *eventlog.Event, what string) string {
	key := fmt.Sprintf("%s/%s-%d", e.ID, what, len(w.ids)+1)
	w.ids[key] = makeID(messagePrefix, w.last, len(w.ids)+1, key)
	return w.ids[key]
}

// addSaid adds a message that a later compaction may keep.
func (w *writer) addSaid(v jsontext.Value) {
	w.add(v)
	if n := len(w.sent); n > 0 {
		w.said[w.sent[n-1]] = v
	}
}

func (w *writer) add(v jsontext.Value) { w.messages = append(w.messages, v) }

func (w *writer) placed(event, message string) {
	w.owner[event] = message
	if n := len(w.sent); n == 0 || w.sent[n-1] != message {
		w.places[message] = append(w.places[message], n)
		w.sent = append(w.sent, message)
	}
}

// next writes the message that begins with the first event, and returns how many events it used.
func (w *writer) next(events []eventlog.Event) int {
	e := &events[0]
	switch b := e.Body.(type) {
	case *eventlog.Compaction:
		w.compaction(e, b)
		return 1
	case *eventlog.Reminder:
		w.report.Warn("reminders, which live for some turns only, are left out")
		return 1
	case *eventlog.Custom:
		if !strings.HasPrefix(b.Type, Name+".") {
			if !w.envelopes.Holds(b) {
				w.report.Warn("events of type %.100s, which opencode has no message for, are left out", b.Type)
			}
			return 1
		}
		if b.Type == prunedType {
			return 1 // the parts of the calls record it
		}
	case *eventlog.Message:
		if b.Role == eventlog.RoleTool {
			return 1 // in the part of its call
		}
	}
	n := span(events, w.envelopes)
	w.message(events[:n])
	return n
}

func (w *writer) message(events []eventlog.Event) {
	if raw := whole(events); raw != "" {
		w.add(jsontext.Value(raw))
		return
	}
	if difference, ok := w.envelopes.Entries[events[0].ID]; ok {
		v := w.report.Amend(w.native.message(events, w.results), difference)
		w.foreign.parent = messageID(events[0].ID)
		w.ids[messageID(events[0].ID)] = w.foreign.parent
		w.addSaid(v)
		w.follow(events)
		return
	}
	for i := range events {
		if m, ok := events[i].Body.(*eventlog.Message); ok && says(m) {
			w.addSaid(w.foreign.message(events, w.results))
			return
		}
	}
	if c, ok := events[0].Body.(*eventlog.Custom); ok {
		w.report.Warn("events of type %.100s are no messages of opencode and are left out", c.Type)
	}
}

// follow makes later messages that were not read from the harness come after one that was, in time.
func (w *writer) follow(events []eventlog.Event) {
	for i := range events {
		if at := events[i].Time; !at.IsZero() && !at.Before(w.foreign.last) {
			w.foreign.last = at.Add(time.Millisecond)
		}
	}
}

// says reports whether a message holds something besides results.
func says(m *eventlog.Message) bool {
	for _, b := range m.Blocks {
		if _, ok := b.(eventlog.ToolResult); !ok {
			return true
		}
	}
	return false
}

// whole returns the message that the reader kept as a custom event, if there is one among the events; the
// other events are parts of it.
func whole(events []eventlog.Event) string {
	for _, e := range events {
		c, ok := e.Body.(*eventlog.Custom)
		if !ok || !strings.HasPrefix(c.Type, Name+".") || strings.HasPrefix(c.Type, Name+".part-") {
			continue
		}
		_, info := transcript.MemberOf([]byte(c.JSON), "info")
		_, parts := transcript.MemberOf([]byte(c.JSON), "parts")
		if (info || parts) && transcript.Valid([]byte(c.JSON)) {
			return c.JSON
		}
	}
	return ""
}

// span returns how many events, from the first on, are one message: those that were one in a file, or the parts of
// one reply. Results do not end it, because they are written in the parts of their calls wherever they are.
func span(events []eventlog.Event, envelopes transcript.Envelopes) int {
	key := messageID(events[0].ID)
	group, replied, asked := "", false, false
	n := 0
	for i := range events {
		mine := messageID(events[i].ID) == key
		switch b := events[i].Body.(type) {
		case *eventlog.Message:
			switch {
			case b.Role == eventlog.RoleTool:
				if mine {
					n = i + 1
				}
				continue // it may be among the parts of a reply
			case b.Role == eventlog.RoleAssistant:
				if asked || (n > 0 && !mine && (b.GroupID == "" || b.GroupID != group)) {
					return n
				}
				group, replied = b.GroupID, true
			default:
				if replied || asked || (n > 0 && !mine) {
					return n
				}
				asked = true
			}
			n = i + 1
		case *eventlog.Custom:
			if n > 0 && !mine && !envelopes.Holds(b) {
				return n
			}
			if mine {
				n = i + 1
			}
		default:
			return max(n, 1)
		}
	}
	return max(n, 1)
}
