package opencode

import (
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	eventlog "github.com/contextd/contextd/internal/log"
)

// next writes the message that begins with the first event and returns how many
// events it has dealt with.
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
			return 1 // the parts of the calls say so
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
		v := w.amend(w.native.message(events, w.results), difference)
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

// follow has what is not the harness's own come after a message that is.
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
