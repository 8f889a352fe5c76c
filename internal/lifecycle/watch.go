package lifecycle

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Cursor says how far a watcher has read the events of a session.
type Cursor struct {
	SessionID string
	// Number is the number of the newest event that it has; 0 is none.
	Number uint64
	// Incarnation, if not empty, is eventlog.Session.IncarnationName of that event's session.
	Incarnation string
	// Time, if not zero, is when that event happened.
	Time time.Time
}

// LostError says that the session of a cursor does not exist any more, that another session has its id, or that other
// events are in the place of those that the watcher read.
type LostError struct {
	SessionID string
	// Field is the cursor's field in the request; "after" if the loss was found during a watch.
	Field string
}

func (e *LostError) Error() string {
	return fmt.Sprintf("%s: session %q is not, or no longer, the one that the watcher read", e.Field, e.SessionID)
}

// Watch is the stream of events for one watcher. One goroutine at a time may use Events.
type Watch struct {
	journal *Journal
	live    *Watcher
	// read holds the positions in the named sessions.
	read map[string]*position
}

// position says how far the events of one incarnation of a session were read.
type position struct {
	of     eventlog.Incarnation
	number uint64
	// time is when the event with the number happened; zero if unknown. If a store is set back to an older state and
	// other events happen, they have the same numbers but other times.
	time time.Time
}

// Watch returns a watch of these sessions, or of all if sessions is empty; it must be closed. The events of sessions
// that are named in sessions or in a cursor are read from the store, each once and without gaps: those after the
// cursor, or else those from now on. If such a session is created again, its events begin with the first. Of other
// sessions the watch has only events that are announced from now on. The error is an *eventlog.InvalidError for an
// impossible cursor, and a *LostError if its session was replaced.
func (j *Journal) Watch(ctx context.Context, sessions []string, after []Cursor) (_ *Watch, err error) {
	w := &Watch{journal: j, read: map[string]*position{}}
	var named []string
	for i, c := range after {
		switch {
		case len(sessions) > 0 && !slices.Contains(sessions, c.SessionID):
			return nil, invalidCursor(i, "session_id", fmt.Sprintf("%q is not among session_ids", c.SessionID))
		case w.read[c.SessionID] != nil:
			return nil, invalidCursor(i, "session_id", fmt.Sprintf("%q has a cursor already", c.SessionID))
		}
		w.read[c.SessionID] = &position{number: c.Number}
		named = append(named, c.SessionID)
	}
	fromNow := slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(sessions))), func(id string) bool { return w.read[id] != nil })
	w.live = j.bus.subscribe(sessions, append(named, fromNow...))
	defer func() {
		if err != nil {
			w.Close()
		}
	}()
	for i, c := range after {
		session, newest, err := j.end(ctx, c.SessionID)
		switch {
		case err != nil:
			return nil, err
		case c.Incarnation != "" && c.Incarnation != session.IncarnationName():
			return nil, &LostError{SessionID: c.SessionID, Field: cursorField(i, "incarnation")}
		case c.Number > newest && c.Incarnation != "":
			return nil, &LostError{SessionID: c.SessionID, Field: cursorField(i, "number")}
		case c.Number > newest:
			return nil, invalidCursor(i, "number", fmt.Sprintf("%q has %d events: it is not the session that had event %d", c.SessionID, newest, c.Number))
		}
		at := w.read[c.SessionID]
		at.of = session.Incarnation
		if at.time, err = j.timeOf(ctx, session, c.Number); err != nil {
			return nil, err
		}
		if !c.Time.IsZero() && !c.Time.Equal(at.time) {
			return nil, &LostError{SessionID: c.SessionID, Field: cursorField(i, "time")}
		}
	}
	for _, id := range fromNow {
		session, newest, err := j.end(ctx, id)
		if err != nil {
			return nil, err
		}
		at := &position{of: session.Incarnation, number: newest}
		if at.time, err = j.timeOf(ctx, session, newest); err != nil {
			return nil, err
		}
		w.read[id] = at
	}
	return w, nil
}

func invalidCursor(i int, field, reason string) error {
	return &eventlog.InvalidError{Field: cursorField(i, field), Reason: reason}
}

func cursorField(i int, field string) string { return fmt.Sprintf("after[%d].%s", i, field) }

// end returns a session and the number of its newest event; zero values if it does not exist.
func (j *Journal) end(ctx context.Context, sessionID string) (session eventlog.Session, newest uint64, err error) {
	if session, err = j.session(ctx, sessionID); session.Incarnation == 0 || err != nil {
		return eventlog.Session{}, 0, err
	}
	if newest, err = j.newest(ctx, sessionID); eventlog.IsMissing(err) {
		return eventlog.Session{}, 0, nil
	}
	return session, newest, err
}

// Close ends the watch. It may be called more than once.
func (w *Watch) Close() { w.live.Close() }

// Events yields events as they come, until ctx ends, the watch is closed or the store fails.
func (w *Watch) Events(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for {
			e, due, ok := w.live.next(ctx)
			if !ok {
				return
			}
			if due == "" {
				if !yield(e, nil) {
					return
				}
				continue
			}
			for e, err := range w.stored(ctx, due) {
				if !yield(e, err) || err != nil {
					return
				}
			}
		}
	}
}

// pageEvents is how many events are read at once.
const pageEvents = 256

// stored yields the events of a session that were not read yet.
func (w *Watch) stored(ctx context.Context, sessionID string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for more := true; more; {
			var page []Event
			var err error
			if page, more, err = w.page(ctx, sessionID); err != nil {
				yield(Event{}, err)
				return
			}
			for _, e := range page {
				w.read[sessionID].number, w.read[sessionID].time = e.Number, e.Time
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// page reads the next events of a session, and whether there may be more.
func (w *Watch) page(ctx context.Context, sessionID string) (page []Event, more bool, err error) {
	at := w.read[sessionID]
	session, err := w.journal.session(ctx, sessionID)
	of := session.Incarnation
	if of == 0 || err != nil {
		return nil, false, err
	}
	if at.of != of {
		*at = position{of: of}
	}
	from := at.number
	if !at.time.IsZero() {
		from-- // the event that was read last must still be there
	}
	page, err = w.journal.after(ctx, session, from, pageEvents)
	if err != nil && !eventlog.IsMissing(err) {
		return nil, false, err
	}
	// The page counts only if the session is still the same.
	now, err := w.journal.session(ctx, sessionID)
	if now.Incarnation != of || err != nil {
		return nil, now.Incarnation != 0, err
	}
	more = len(page) == pageEvents
	if from < at.number {
		if len(page) == 0 || page[0].Number != at.number || !page[0].Time.Equal(at.time) {
			return nil, false, &LostError{SessionID: sessionID, Field: "after"}
		}
		page = page[1:]
	}
	return page, more, nil
}
