package transcript

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Builder collects the sessions of one transcript. One goroutine may use it.
type Builder struct {
	t        Transcript
	sessions []*SessionBuilder
	skipped  Tally
	kept     Tally
	// account keeps its first error, which ends the reading of the input.
	account *Account
	// warned is the size of the warnings in bytes; unwarned counts the warnings beyond the limits.
	warned, unwarned int
}

// NewBuilder begins a transcript of the named harness. Its memory counts for the account of the input.
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

// The limits of warnings: people read them, and a file may have a fault in every line.
const (
	maxWarnings     = 1000
	maxWarningBytes = 256 << 10
	maxWarning      = 4 << 10
)

// Skip counts an entry that is bookkeeping of the harness and omitted on purpose. One warning at the end
// lists all kinds of them.
func (b *Builder) Skip(kind string) { b.skipped.count(kind) }

// Session begins a session of the transcript.
func (b *Builder) Session(suffix string) *SessionBuilder {
	_ = b.account.Retain(sessionCost) // the account keeps the error for Finish
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

// Finish returns the transcript without empty sessions; if the main session is empty, the first other one
// becomes the main one. err is the error that ended the reading of the input, and is returned if set. If no
// session has a message or a compaction, the input was no transcript of this harness and the error is a
// *FormatError. The builder must not be used afterwards.
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
		reason := "there is no conversation in it"
		// Servers log the error, so it does not quote the warning, which may hold content.
		if len(b.t.Warnings) > 0 && b.t.Warnings[0].Line > 0 {
			reason += fmt.Sprintf("; see line %d", b.t.Warnings[0].Line)
		}
		return Transcript{}, &FormatError{Harness: b.t.Harness, Reason: reason}
	}
	b.t.Sessions[0].Suffix = ""
	if b.unwarned > 0 {
		b.t.Warnings = append(b.t.Warnings, Warning{Message: fmt.Sprintf("%d more warnings are left out", b.unwarned)})
	}
	b.sum("left out as bookkeeping of the harness", b.skipped)
	b.sum("kept as custom events", b.kept)
	return b.t, nil
}

// sum adds a warning with the counts, beyond the limit on warnings too.
func (b *Builder) sum(what string, kinds Tally) {
	if len(kinds) > 0 {
		b.t.Warnings = append(b.t.Warnings, Warning{Message: what + ": " + kinds.String()})
	}
}

// Entry is one entry of a transcript, to be appended as an event.
type Entry struct {
	Line int
	// ID is the entry's own id, or one made from its position; never empty.
	ID     string
	Time   time.Time
	Labels map[string]string
	Body   eventlog.Body
	// Native is the entry's JSON, unchanged. Parts that the log would refuse are kept in a custom event with
	// this JSON.
	Native []byte
}

// Label sets a label of the event that the entry becomes.
func (e *Entry) Label(key, value string) {
	if e.Labels == nil {
		e.Labels = map[string]string{}
	}
	e.Labels[key] = value
}

// Beside labels the blocks of a human's message that the harness added to the human's words. The indexes are those
// after the builder has removed empty texts.
func (e *Entry) Beside(blocks []eventlog.Block, added func(i int) bool) {
	var listed []string
	at := 0
	for i, b := range blocks {
		switch b := b.(type) {
		case eventlog.Text:
			if b.Text == "" {
				continue
			}
		case eventlog.ToolResult, eventlog.ToolCall, nil:
			return // the builder may drop it
		}
		if added(i) {
			listed = append(listed, strconv.Itoa(at))
		}
		at++
	}
	if all := strings.Join(listed, ","); all != "" && len(listed) < at && len(all) <= MaxLabelValue {
		e.Label(LabelInjectedBlocks, all)
	}
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
	places  map[string]int  // the index of each event that InOrder has looked at, by its id
}

// Label sets a label of the session unless the value is empty or the label is set already. A value that
// exceeds the limit is omitted with a warning.
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

// Len returns the number of events so far.
func (s *SessionBuilder) Len() int { return len(s.session.Events) }

// InOrder returns those of some ids that events have, in the order of the events and each once. It looks at each event
// only once, because a file may have very many compactions that name what they kept.
func (s *SessionBuilder) InOrder(ids []string) []string {
	if s.places == nil {
		s.places = map[string]int{}
	}
	events := s.session.Events
	for at := len(s.places); at < len(events); at++ {
		s.places[events[at].ID] = at
	}
	var places []int
	for _, id := range ids {
		if at, ok := s.places[id]; ok {
			places = append(places, at)
		}
	}
	slices.Sort(places)
	var out []string
	for _, at := range slices.Compact(places) {
		out = append(out, events[at].ID)
	}
	return out
}

// Append makes an event of the entry. If the log would refuse the event, it is changed, and every change is counted
// or gives a warning: repeated entries are dropped, repeated ids are renamed, and results without a call and messages
// without content are kept as custom events. It returns the id of the event, or "" if the entry was dropped or kept
// as a custom event.
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

// AppendRead appends an entry, and an envelope with the difference between the entry and what base makes of its
// event. With that the writer can later restore the entry. It returns the event's id, or "" if there is none.
func (s *SessionBuilder) AppendRead(e Entry, base func(*eventlog.Event, *eventlog.Message) jsontext.Value) string {
	n := s.Len()
	id := s.Append(e)
	events := s.Since(n)
	if id == "" || len(events) != 1 {
		return id // it was dropped, or a custom event has the whole entry
	}
	if m, ok := events[0].Body.(*eventlog.Message); ok {
		s.Envelope(n, Present(Difference(base(&events[0], m), e.Native)))
	}
	return id
}

// Present returns a difference that is never nil, because the existence of an envelope shows that an entry was read.
func Present(difference []byte) []byte {
	if difference != nil {
		return difference
	}
	return []byte("{}")
}

// Boundary appends an entry as a compaction. The compaction has the entry's JSON itself, so that Native is
// not needed.
func (s *SessionBuilder) Boundary(e Entry, c *eventlog.Compaction) string {
	e.Body, e.Native = c, nil
	return s.Append(e)
}

// Custom keeps the entry's native JSON as a custom event of the type.
func (s *SessionBuilder) Custom(e Entry, kind string) {
	e.Body = &eventlog.Custom{Type: s.builder.t.Harness + "." + kind, JSON: Compact(e.Native)}
	s.Append(e)
}

// Unreadable keeps an entry of an unexpected shape as a custom event, with a warning.
func (s *SessionBuilder) Unreadable(e Entry, err error) {
	s.builder.Warn(e.Line, "unexpected shape, kept as a custom event: %v", err)
	s.Custom(e, "unreadable")
}

// Keep is Custom for an entry for which the reader has no better place. One warning at the end lists the kinds of all
// such entries.
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

// keep makes a custom event, with an id of its own, of an entry that also gives another event.
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

// eventID returns the id of the entry's event, and false if the same entry came before.
func (s *SessionBuilder) eventID(e Entry) (string, bool) {
	seen := s.ids[e.ID]
	if seen == nil {
		seen = &entryID{contents: map[[sha256.Size]byte]bool{}}
		s.ids[e.ID] = seen
	}
	// Labels are not compared: a reply that is written again with another token count is the same reply.
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

// entryID records what was appended under one entry id.
type entryID struct {
	contents map[[sha256.Size]byte]bool // digests of the bodies
	used     int                        // the last number that was used to distinguish events with the id
}

// Labels returns the session's labels so far, which the caller must not change.
func (s *SessionBuilder) Labels() map[string]string { return s.session.Labels }

// DropDuplicate counts an entry that repeats another, if the reader itself notices that and appends nothing.
func (b *Builder) DropDuplicate() { b.t.DroppedDuplicates++ }
