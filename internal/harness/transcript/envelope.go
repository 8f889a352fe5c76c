package transcript

import (
	"encoding/json"
	"maps"
	"unicode/utf8"

	eventlog "github.com/contextd/contextd/internal/log"
)

// A reader keeps what an entry of a file says besides its conversation, so that a
// writer gives the same entry again: as the difference between what the writer
// makes of the events alone and the entry itself. It is a label of the first of
// the entry's events, or, where it is too long for one, a custom event behind them.
// What writers make of events is thereby part of what was stored: it may grow, and
// must not change.

// EntryLabel is the label's key.
func EntryLabel(harness string) string { return harness + ".entry" }

// CustomType is the type of custom events that hold an entry of a harness as it
// stood, because a harness that resumes needs it or because it is small.
func CustomType(harness, kind string) string { return "harness." + harness + "." + kind }

const (
	entryKind   = "entry"
	sessionKind = "session"
)

// Since returns the events that were appended from the position n on. They are the
// session's; nobody may change them.
func (s *SessionBuilder) Since(n int) []eventlog.Event { return s.session.Events[n:] }

// CopyLabels sets the labels that another session has.
func (s *SessionBuilder) CopyLabels(from *SessionBuilder) {
	for k, v := range maps.All(from.session.Labels) {
		s.Label(k, v)
	}
}

// Record keeps the entry's JSON as a custom event for a writer to write again.
func (s *SessionBuilder) Record(e Entry, kind string) {
	e.Labels = nil
	e.Body = &eventlog.Custom{Type: CustomType(s.builder.t.Harness, kind), JSON: Compact(e.Native)}
	s.Append(e)
}

// Annotate sets a label of the event at the position.
func (s *SessionBuilder) Annotate(n int, key, value string) {
	event := &s.session.Events[n]
	labels := make(map[string]string, len(event.Labels)+1)
	maps.Copy(labels, event.Labels)
	labels[key] = Clean(value)
	event.Labels = labels
}

// Envelope keeps a difference with the event at the position.
func (s *SessionBuilder) Envelope(n int, difference []byte) {
	if difference == nil {
		return
	}
	event := s.session.Events[n]
	if len(event.Labels) < MaxLabels && utf8.RuneCount(difference) <= MaxLabelValue {
		s.Annotate(n, EntryLabel(s.builder.t.Harness), string(difference))
		return
	}
	s.Append(Entry{ID: event.ID + "/" + entryKind, Time: event.Time, Body: &eventlog.Custom{
		Type: CustomType(s.builder.t.Harness, entryKind),
		JSON: `{"event":` + Quote(event.ID) + `,"difference":` + string(difference) + `}`,
	}})
}

// SessionEnvelope keeps the difference of the entry that is about the session as a
// whole.
func (s *SessionBuilder) SessionEnvelope(difference []byte) {
	switch {
	case difference == nil:
	case utf8.RuneCount(difference) <= MaxLabelValue:
		s.Label(s.builder.t.Harness+"."+sessionKind, string(difference))
	default:
		s.Append(Entry{ID: "session-" + entryKind, Body: &eventlog.Custom{
			Type: CustomType(s.builder.t.Harness, sessionKind+"-"+entryKind), JSON: string(difference),
		}})
	}
}

// Envelopes are the differences that a session holds for a harness.
type Envelopes struct {
	// Session is that of the session as a whole; empty if there is none.
	Session string
	// Entries are by the id of the first event.
	Entries map[string]string
	harness string
}

// EnvelopesOf collects them.
func EnvelopesOf(harness string, s Session) Envelopes {
	e := Envelopes{Session: s.Labels[harness+"."+sessionKind], Entries: map[string]string{}, harness: harness}
	key := EntryLabel(harness)
	for i := range s.Events {
		event := &s.Events[i]
		if d, ok := event.Labels[key]; ok {
			e.Entries[event.ID] = d
		}
		custom, ok := event.Body.(*eventlog.Custom)
		if !ok || !e.Holds(custom) {
			continue
		}
		if custom.Type == CustomType(harness, sessionKind+"-"+entryKind) {
			e.Session = custom.JSON
			continue
		}
		var entry struct {
			Event      string          `json:"event"`
			Difference json.RawMessage `json:"difference"`
		}
		if Decode([]byte(custom.JSON), &entry) == nil {
			e.Entries[entry.Event] = string(entry.Difference)
		}
	}
	return e
}

// Holds reports whether a custom event is but an envelope.
func (e Envelopes) Holds(c *eventlog.Custom) bool {
	return c.Type == CustomType(e.harness, entryKind) || c.Type == CustomType(e.harness, sessionKind+"-"+entryKind)
}
