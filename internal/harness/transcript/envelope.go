package transcript

import (
	"maps"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Envelope is what an entry of a file says besides its conversation, so that a writer gives
// the same entry again. What writers make of events is therefore part of what was stored:
// it may grow, and must not change.
type Envelope struct {
	// Harness is the one whose writer reads the difference.
	Harness string
	// Event is the id of the first of the entry's events; empty if the entry is about the
	// session as a whole.
	Event string
	// Part distinguishes entries of one event; empty for the first.
	Part string
	// Difference leads from what the writer makes of the events alone to the entry.
	Difference string
}

// CustomType is the type of custom events that hold an entry of a harness unchanged,
// because a harness that resumes needs it or because it is small.
func CustomType(harness, kind string) string { return "harness." + harness + "." + kind }

// Since returns the events that were appended from the position n on. They are the
// session's; nobody may change them.
func (s *SessionBuilder) Since(n int) []eventlog.Event { return s.session.Events[n:] }

// CopyHeader sets the labels that another session has, and what its file says of it besides.
func (s *SessionBuilder) CopyHeader(from *SessionBuilder) {
	for k, v := range maps.All(from.session.Labels) {
		s.Label(k, v)
	}
	for _, e := range from.session.Envelopes {
		if e.Event == "" {
			s.SessionEnvelope([]byte(e.Difference))
		}
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

// Envelope keeps a difference with the event at the position; nil is none.
func (s *SessionBuilder) Envelope(n int, difference []byte) { s.EnvelopeOf(n, "", difference) }

// EnvelopeOf keeps the difference of a part.
func (s *SessionBuilder) EnvelopeOf(n int, part string, difference []byte) {
	s.envelope(Envelope{Event: s.session.Events[n].ID, Part: part}, difference)
}

// SessionEnvelope keeps the difference of the entry that is about the session as a
// whole; nil is none. Of several entries the first counts.
func (s *SessionBuilder) SessionEnvelope(difference []byte) {
	if !s.headed {
		s.headed = true
		s.envelope(Envelope{}, difference)
	}
}

func (s *SessionBuilder) envelope(e Envelope, difference []byte) {
	if difference == nil || s.builder.account.Retain(envelopeCost+uint64(len(difference))) != nil {
		return // Finish returns the error
	}
	e.Harness, e.Difference = s.builder.t.Harness, Clean(string(difference))
	s.session.Envelopes = append(s.session.Envelopes, e)
}

// Envelopes are the differences that a session holds for a harness.
type Envelopes struct {
	// Session is that of the session as a whole; empty if there is none.
	Session string
	// Entries are by the id of the first event, and that of a part with the part after it.
	Entries map[string]string
	harness string
}

// EnvelopesOf collects them.
func EnvelopesOf(harness string, s Session) Envelopes {
	e := Envelopes{Entries: map[string]string{}, harness: harness}
	e.fromLabels(s)
	for _, one := range s.Envelopes {
		switch {
		case one.Harness != harness:
		case one.Event == "":
			e.Session = one.Difference
		case one.Part == "":
			e.Entries[one.Event] = one.Difference
		default:
			e.Entries[one.Event+"/"+one.Part] = one.Difference
		}
	}
	return e
}

// EntryLabel is the label in which builds before there were envelopes kept a difference, cut
// into as many labels as it took, or else in a custom event.
func EntryLabel(harness string) string { return harness + ".entry" }

// fromLabels collects what these builds imported.
func (e *Envelopes) fromLabels(s Session) {
	e.Session = s.Labels[e.harness+".session"]
	key := EntryLabel(e.harness)
	for i := range s.Events {
		event := &s.Events[i]
		if d, ok := event.Labels[key]; ok {
			for n := 2; ok; n++ {
				e.Entries[event.ID] += d
				d, ok = event.Labels[key+"."+strconv.Itoa(n)]
			}
		}
		var entry struct {
			Event      string         `json:"event"`
			Difference jsontext.Value `json:"difference"`
		}
		if c, ok := event.Body.(*eventlog.Custom); !ok || !e.Holds(c) {
			continue
		} else if strings.HasSuffix(c.Type, ".session-entry") {
			e.Session = c.JSON
		} else if Decode([]byte(c.JSON), &entry) == nil {
			e.Entries[entry.Event] = string(entry.Difference)
		}
	}
}

// Holds reports whether a custom event is but an envelope.
func (e Envelopes) Holds(c *eventlog.Custom) bool {
	return c.Type == CustomType(e.harness, "entry") || c.Type == CustomType(e.harness, "session-entry")
}
