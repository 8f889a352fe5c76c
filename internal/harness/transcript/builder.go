package transcript

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Builder collects the sessions of one transcript. It is for one goroutine.
type Builder struct {
	t        Transcript
	sessions []*SessionBuilder
	skipped  Tally
	kept     Tally
	// account's error ends the reading of the input.
	account *Account
	// warned is how many bytes the warnings have, and unwarned how many more there were.
	warned, unwarned int
}

// NewBuilder begins a transcript of the named harness, which is read from the input.
func NewBuilder(harness string, in io.Reader) *Builder {
	return &Builder{t: Transcript{Harness: harness}, skipped: Tally{}, kept: Tally{}, account: accountOf(in)}
}

// Warn records a warning; line 0 concerns the whole file.
func (b *Builder) Warn(line int, format string, args ...any) {
	if len(b.t.Warnings) >= maxWarnings || b.warned >= maxWarningBytes {
		b.unwarned++
		return
	}
	message := cut(Clean(fmt.Sprintf(format, args...)), maxWarning)
	b.warned += len(message)
	b.t.Warnings = append(b.t.Warnings, Warning{Line: line, Message: message})
}

// Warnings are for people to read; a file may have a fault in every line.
const (
	maxWarnings     = 1000
	maxWarningBytes = 256 << 10
	maxWarning      = 4 << 10
)

// Skip counts an entry that is bookkeeping of the harness and is left out on
// purpose. All of them are named in one warning at the end.
func (b *Builder) Skip(kind string) { b.skipped.count(kind) }

// Session begins a session of the transcript.
func (b *Builder) Session(suffix string) *SessionBuilder {
	_ = b.account.Retain(sessionCost) // its error ends the reading
	s := &SessionBuilder{
		builder: b,
		session: Session{Suffix: suffix, Labels: map[string]string{}},
		ids:     map[string]*entryID{},
		calls:   map[string]int{},
		taken:   map[string]bool{},
	}
	b.sessions = append(b.sessions, s)
	return s
}

// Finish returns the transcript, without sessions that stayed empty, or the error that
// reading the input ended with. If the main session stayed empty, the first other one takes
// its place. It is a *FormatError if no session has a message or a compaction: then the
// input was no transcript of this harness. The builder must not be used afterwards.
func (b *Builder) Finish(err error) (Transcript, error) {
	if err := cmp.Or(err, b.account.Retain(0)); err != nil {
		return Transcript{}, err
	}
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
	if b.unwarned > 0 {
		b.t.Warnings = append(b.t.Warnings, Warning{Message: fmt.Sprintf("%d more warnings are left out", b.unwarned)})
	}
	b.sum("left out as bookkeeping of the harness", b.skipped)
	b.sum("kept as custom events", b.kept)
	return b.t, nil
}

// sum warns of what was counted, however many warnings there are.
func (b *Builder) sum(what string, kinds Tally) {
	if len(kinds) > 0 {
		b.t.Warnings = append(b.t.Warnings, Warning{Message: what + ": " + kinds.String()})
	}
}

// Entry is one entry of a transcript on its way to become an event.
type Entry struct {
	Line int
	// ID is the entry's own id, or one made from its position; never empty.
	ID     string
	Time   time.Time
	Labels map[string]string
	Body   eventlog.Body
	// Native is the entry's JSON, unchanged. What the log would refuse is kept as
	// a custom event that holds it.
	Native []byte
}

// Label sets a label of the event to be.
func (e *Entry) Label(key, value string) {
	if e.Labels == nil {
		e.Labels = map[string]string{}
	}
	e.Labels[key] = value
}

type openCall struct {
	original, final, group string
	event                  int // which event of the session made it
}

// SessionBuilder makes the events of one session.
type SessionBuilder struct {
	builder *Builder
	session Session
	ids     map[string]*entryID
	taken   map[string]bool // every event id given
	open    []openCall      // oldest first
	calls   map[string]int  // how often each original call id was used
	callIDs map[string]bool // every final call id given
	speaks  bool            // it has a message or a compaction
	headed  bool            // the entry about the session as a whole was read
	held    map[string]bool // final call ids reserved but not used yet
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
// that it does not, and every such change is counted or gives a warning: repeated
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

// AppendRead makes an event of an entry and keeps with it what the entry says besides, as the
// difference from what base makes of the event. It returns the event's id, or "" if it made
// none.
func (s *SessionBuilder) AppendRead(e Entry, base func(*eventlog.Event, *eventlog.Message) jsontext.Value) string {
	n := s.Len()
	id := s.Append(e)
	events := s.Since(n)
	if id == "" || len(events) != 1 {
		return id // it was dropped, or a custom event has the entry, unchanged
	}
	if m, ok := events[0].Body.(*eventlog.Message); ok {
		s.Envelope(n, Present(Difference(base(&events[0], m), e.Native)))
	}
	return id
}

// Present is a difference that is never empty: its presence says that an entry was read.
func Present(difference []byte) []byte {
	if difference != nil {
		return difference
	}
	return []byte("{}")
}

// Boundary makes a compaction of the entry, whose own JSON the compaction has; see Append.
func (s *SessionBuilder) Boundary(e Entry, c *eventlog.Compaction) string {
	e.Body, e.Native = c, nil
	return s.Append(e)
}

// Custom keeps the entry's native JSON as a custom event of the type.
func (s *SessionBuilder) Custom(e Entry, kind string) {
	e.Body = &eventlog.Custom{Type: s.builder.t.Harness + "." + kind, JSON: Compact(e.Native)}
	s.Append(e)
}

// Unreadable keeps an entry of a shape that was not expected, and warns of it.
func (s *SessionBuilder) Unreadable(e Entry, err error) {
	s.builder.Warn(e.Line, "unexpected shape, kept as a custom event: %v", err)
	s.Custom(e, "unreadable")
}

// Keep is Custom for what the reader has no better place for. All such entries
// are named in one warning at the end.
func (s *SessionBuilder) Keep(e Entry, kind string) {
	s.builder.kept.count(kind)
	s.Custom(e, kind)
}

func (s *SessionBuilder) push(e Entry) {
	if _, custom := e.Body.(*eventlog.Custom); !custom {
		s.speaks = true
	}
	event := eventlog.Event{ID: e.ID, Time: e.Time.UTC(), Labels: e.Labels, Body: e.Body}
	if s.builder.account.Retain(weight(&event)) != nil {
		return // Finish returns the error
	}
	s.session.Events = append(s.session.Events, event)
	if extra := len(s.open) - eventlog.MaxOpenCalls; extra > 0 {
		s.open = slices.Delete(s.open, 0, extra)
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
	if seen == nil {
		seen = &entryID{contents: map[[sha256.Size]byte]bool{}}
		s.ids[e.ID] = seen
	}
	// Labels take no part: a reply that is written again with another count of its tokens
	// is the same reply.
	content := eventlog.Digest(eventlog.Event{Body: e.Body})
	if seen.contents[content] {
		return "", false
	}
	seen.contents[content] = true
	seen.used++
	id := e.ID
	for seen.used > 1 || s.taken[id] {
		seen.used = max(seen.used, 2)
		id = e.ID + "#" + strconv.Itoa(seen.used)
		if !s.taken[id] {
			s.builder.t.RenamedIDs++
			break
		}
		seen.used++
	}
	s.taken[id] = true
	return id, true
}

// entryID is what came under an id of an entry.
type entryID struct {
	contents map[[sha256.Size]byte]bool // digests of them
	used     int                        // the last number that distinguishes events with the id
}

// Labels returns the labels so far, to be read only.
func (s *SessionBuilder) Labels() map[string]string { return s.session.Labels }

// DropDuplicate counts an entry that a reader found to repeat another, where it makes
// no event of its own that would show it.
func (b *Builder) DropDuplicate() { b.t.DroppedDuplicates++ }
