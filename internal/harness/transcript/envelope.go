package transcript

import (
	"encoding/json"
	"maps"
	"strconv"
	"time"
	"unicode/utf8"

	eventlog "github.com/contextd/contextd/internal/log"
)

// A reader keeps what an entry of a file says besides its conversation, so that a
// writer gives the same entry again: as the difference between what the writer
// makes of the events alone and the entry itself. It is a label of the first of
// the entry's events, or several where it is long, or else a custom event.
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
	if parts := pieces(string(difference)); len(parts) <= envelopeLabels && len(event.Labels)+len(parts) <= MaxLabels {
		labels := make(map[string]string, len(event.Labels)+len(parts))
		maps.Copy(labels, event.Labels)
		for i, part := range parts {
			labels[pieceLabel(s.builder.t.Harness, i)] = Clean(part)
		}
		s.session.Events[n].Labels = labels
		return
	}
	s.EnvelopeOf(event.ID, event.Time, difference)
}

// EnvelopeOf keeps a difference as a custom event, under an id that the writer will
// look for: that of an event, or one that stands for an entry without events.
func (s *SessionBuilder) EnvelopeOf(id string, at time.Time, difference []byte) {
	if difference == nil {
		return
	}
	s.Append(Entry{ID: id + "/" + entryKind, Time: at, Body: &eventlog.Custom{
		Type: CustomType(s.builder.t.Harness, entryKind),
		JSON: `{"event":` + Quote(id) + `,"difference":` + string(difference) + `}`,
	}})
}

// envelopeLabels is how many labels of an event a difference may take.
const envelopeLabels = 12

func pieceLabel(harness string, i int) string {
	if i == 0 {
		return EntryLabel(harness)
	}
	return EntryLabel(harness) + "." + strconv.Itoa(i+1)
}

// pieces cuts a text into what labels can hold.
func pieces(text string) []string {
	var all []string
	for len(text) > MaxLabelValue {
		n, runes := 0, 0
		for n < len(text) && runes < MaxLabelValue {
			_, size := utf8.DecodeRuneInString(text[n:])
			n, runes = n+size, runes+1
		}
		all, text = append(all, text[:n]), text[n:]
	}
	if text != "" || len(all) == 0 {
		all = append(all, text)
	}
	return all
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
			for n := 1; n < envelopeLabels; n++ {
				d += event.Labels[pieceLabel(harness, n)]
			}
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
