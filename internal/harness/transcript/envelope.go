package transcript

import (
	"maps"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Envelope has what an entry of a file says beyond the events, so that a writer can restore the entry. It is a
// difference from what the writer makes of the events alone. So writers may only add to what they make of stored
// events, and must not change anything else in it.
type Envelope struct {
	// Harness is the harness whose writer applies the difference.
	Harness string
	// Event is the id of the entry's first event; empty if the entry is about the session as a whole.
	Event string
	// Part distinguishes the envelopes of several entries with the same event; empty for the first.
	Part string
	// Difference turns what the writer makes of the events alone into the entry (see Amend).
	Difference string
}

// CustomType returns the type of custom events that keep an entry of a harness unchanged, either because the harness
// needs the entry to resume or because the entry is small.
func CustomType(harness, kind string) string { return "harness." + harness + "." + kind }

// Since returns the events that were appended from index n on, which the caller must not change.
func (s *SessionBuilder) Since(n int) []eventlog.Event { return s.session.Events[n:] }

// CopyHeader copies the labels of another session, and the envelopes about that session as a whole.
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

// Record keeps the entry's JSON as a custom event, from which a writer restores the entry.
func (s *SessionBuilder) Record(e Entry, kind string) {
	e.Labels = nil
	e.Body = &eventlog.Custom{Type: CustomType(s.builder.t.Harness, kind), JSON: Compact(e.Native)}
	s.Append(e)
}

// Annotate sets a label of the event at index n.
func (s *SessionBuilder) Annotate(n int, key, value string) {
	event := &s.session.Events[n]
	labels := make(map[string]string, len(event.Labels)+1)
	maps.Copy(labels, event.Labels)
	labels[key] = Clean(value)
	event.Labels = labels
}

// Envelope adds an envelope to the event at index n; nil adds none.
func (s *SessionBuilder) Envelope(n int, difference []byte) { s.EnvelopeOf(n, "", difference) }

// EnvelopeOf is Envelope for a part of the event's entry.
func (s *SessionBuilder) EnvelopeOf(n int, part string, difference []byte) {
	s.envelope(Envelope{Event: s.session.Events[n].ID, Part: part}, difference)
}

// SessionEnvelope adds the envelope of the entry that is about the session as a whole; nil adds none. Only
// the first call has an effect.
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

// Envelopes are the differences in a session's envelopes of one harness.
type Envelopes struct {
	// Session is the difference for the session as a whole; empty if there is none.
	Session string
	// Entries are the differences by the id of the event, or by "id/part".
	Entries map[string]string
	harness string
}

// EnvelopesOf collects the differences for a harness.
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

// EntryLabel returns the label in which older builds, which had no envelopes, kept a difference. They split it over
// numbered labels if one was too short, and kept longer ones in a custom event.
func EntryLabel(harness string) string { return harness + ".entry" }

// fromLabels collects the differences in these labels and events.
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

// Holds reports whether a custom event is nothing but an envelope of an older build.
func (e Envelopes) Holds(c *eventlog.Custom) bool {
	return c.Type == CustomType(e.harness, "entry") || c.Type == CustomType(e.harness, "session-entry")
}
