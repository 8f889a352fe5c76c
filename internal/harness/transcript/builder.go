package transcript

import (
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Builder collects the sessions of one transcript. It is for one goroutine.
type Builder struct {
	t        Transcript
	sessions []*SessionBuilder
	skipped  Tally
	kept     Tally
}

// NewBuilder begins a transcript of the named harness.
func NewBuilder(harness string) *Builder {
	return &Builder{t: Transcript{Harness: harness}, skipped: Tally{}, kept: Tally{}}
}

// Warn records a warning; line 0 concerns the whole file.
func (b *Builder) Warn(line int, format string, args ...any) {
	b.t.Warnings = append(b.t.Warnings, Warning{Line: line, Message: Clean(fmt.Sprintf(format, args...))})
}

// Skip counts an entry that is bookkeeping of the harness and is left out on
// purpose. All of them are named in one warning at the end.
func (b *Builder) Skip(kind string) { b.skipped[Clean(kind)]++ }

// Session begins a session of the transcript.
func (b *Builder) Session(suffix string) *SessionBuilder {
	s := &SessionBuilder{
		builder: b,
		session: Session{Suffix: suffix, Labels: map[string]string{}},
		ids:     map[string][]eventlog.Body{},
		calls:   map[string]int{},
		taken:   map[string]bool{},
	}
	b.sessions = append(b.sessions, s)
	return s
}

// Finish returns the transcript, without sessions that stayed empty. If the main
// session is among those, the first other one takes its place. It is a *FormatError
// if no session has a message or a compaction: then the input was no transcript of
// this harness. The builder must not be used afterwards.
func (b *Builder) Finish() (Transcript, error) {
	conversation := false
	for _, s := range b.sessions {
		if len(s.session.Events) > 0 {
			b.t.Sessions = append(b.t.Sessions, s.session)
		}
		conversation = conversation || s.speaks
	}
	if !conversation {
		return Transcript{}, &FormatError{Harness: b.t.Harness, Reason: "there is no conversation in it"}
	}
	b.t.Sessions[0].Suffix = ""
	if len(b.skipped) > 0 {
		b.Warn(0, "left out as bookkeeping of the harness: %s", b.skipped)
	}
	if len(b.kept) > 0 {
		b.Warn(0, "kept as custom events: %s", b.kept)
	}
	return b.t, nil
}

// Entry is one entry of a transcript on its way to become an event.
type Entry struct {
	Line int
	// ID is the entry's own id, or one made from its position; never empty.
	ID     string
	Time   time.Time
	Labels map[string]string
	Body   eventlog.Body
	// Native is the entry's JSON as it stood. What the log would refuse is kept as
	// a custom event that holds it.
	Native []byte
}

type openCall struct {
	original, final, group string
	event                  int // which event of the session made it
}

// SessionBuilder makes the events of one session.
type SessionBuilder struct {
	builder *Builder
	session Session
	ids     map[string][]eventlog.Body // the contents seen under each entry id
	taken   map[string]bool            // every event id given
	open    []openCall                 // oldest first
	calls   map[string]int             // how often each original call id was used
	callIDs map[string]bool            // every final call id given
	speaks  bool                       // it has a message or a compaction
	held    map[string]bool            // final call ids reserved but not used yet
}

// Label sets a label of the session unless the value is empty or the label is set.
// A value that is too long for one is reported instead.
func (s *SessionBuilder) Label(key, value string) {
	if len(value) > MaxLabelValue && utf8.RuneCountInString(value) > MaxLabelValue {
		s.builder.Warn(0, "the session's %s is too long for a label and was left out", key)
		return
	}
	if _, ok := s.session.Labels[key]; !ok && value != "" {
		s.session.Labels[key] = Clean(value)
	}
}

// SetParentCall says which tool call of the main session began this one.
func (s *SessionBuilder) SetParentCall(callID string) { s.session.ParentCallID = Clean(callID) }

// ParentCall returns what SetParentCall set.
func (s *SessionBuilder) ParentCall() string { return s.session.ParentCallID }

// Len is the number of events so far.
func (s *SessionBuilder) Len() int { return len(s.session.Events) }

// Append makes an event of the entry. What the log would refuse is changed so
// that it does not, and every such change is counted or warned of: repeated
// entries are dropped, repeated ids renamed, results without a call and messages
// without content kept as custom events. It returns the id of the event, or "" if
// the entry was dropped or kept as a custom event instead.
func (s *SessionBuilder) Append(e Entry) string {
	s.clean(&e)
	id, fresh := s.eventID(e)
	if !fresh {
		s.builder.t.DroppedDuplicates++
		return ""
	}
	e.ID = id
	switch body := e.Body.(type) {
	case *eventlog.Message:
		return s.appendMessage(e, body)
	case *eventlog.Compaction:
		s.builder.t.Compactions++
		s.push(e)
	default:
		s.push(e)
	}
	return id
}

// Custom keeps the entry's native JSON as a custom event of the type.
func (s *SessionBuilder) Custom(e Entry, kind string) {
	e.Body = &eventlog.Custom{Type: s.builder.t.Harness + "." + kind, JSON: Compact(e.Native)}
	s.Append(e)
}

// Keep is Custom for what the reader has no better place for. All such entries
// are named in one warning at the end.
func (s *SessionBuilder) Keep(e Entry, kind string) {
	s.builder.kept[Clean(kind)]++
	s.Custom(e, kind)
}

func (s *SessionBuilder) push(e Entry) {
	if _, custom := e.Body.(*eventlog.Custom); !custom {
		s.speaks = true
	}
	s.session.Events = append(s.session.Events, eventlog.Event{ID: e.ID, Time: e.Time.UTC(), Labels: e.Labels, Body: e.Body})
	if extra := len(s.open) - eventlog.MaxOpenCalls; extra > 0 {
		s.open = append([]openCall(nil), s.open[extra:]...)
	}
}

// keep makes a custom event of an entry that has given, or will give, another
// event as well.
func (s *SessionBuilder) keep(e Entry, kind string) {
	e.ID += "/" + kind
	for s.taken[e.ID] {
		e.ID += "+"
	}
	s.taken[e.ID] = true
	e.Labels = nil
	e.Body = &eventlog.Custom{Type: s.builder.t.Harness + "." + kind, JSON: Compact(e.Native)}
	s.push(e)
}

// eventID returns the id for the entry, and false if the same entry was there
// before.
func (s *SessionBuilder) eventID(e Entry) (string, bool) {
	seen := s.ids[e.ID]
	for _, have := range seen {
		if same(have, e.Body) {
			return "", false
		}
	}
	s.ids[e.ID] = append(seen, e.Body)
	n := len(seen) + 1
	id := e.ID
	if n > 1 {
		id += "#" + strconv.Itoa(n)
	}
	for s.taken[id] {
		n++
		id = e.ID + "#" + strconv.Itoa(n)
	}
	if n > 1 {
		s.builder.t.RenamedIDs++
	}
	s.taken[id] = true
	return id, true
}

// same compares what entries say. Labels take no part: a reply that is written
// again with another count of its tokens is the same reply.
func same(a, b eventlog.Body) bool {
	return eventlog.Digest(eventlog.Event{Body: a}) == eventlog.Digest(eventlog.Event{Body: b})
}
