package log

import (
	"errors"
	"fmt"
	"strconv"
)

// ErrClosed is returned by every method of a store that has been closed.
var ErrClosed = errors.New("store is closed")

// NotFoundError says that a named thing does not exist.
type NotFoundError struct {
	Kind string // "session", "artifact", "event"
	Name string
	// There says what does exist in its place, as "the log has events 1 to 7"; may be empty.
	There string
}

func (e *NotFoundError) Error() string {
	text := fmt.Sprintf("%s %q does not exist", e.Kind, e.Name)
	if e.There != "" {
		text += "; " + e.There
	}
	return text
}

// EventsThere says which events a log has.
func EventsThere(head Seq) string {
	switch head {
	case 0:
		return "the log has no events"
	case 1:
		return "the log has event 1 alone"
	default:
		return fmt.Sprintf("the log has events 1 to %d", head)
	}
}

// NoEvent says that a log does not reach so far.
func NoEvent(seq Seq) *NotFoundError {
	return &NotFoundError{Kind: "event", Name: strconv.FormatUint(uint64(seq), 10)}
}

// ExistsError says that the name of something to be made is taken.
type ExistsError struct {
	Kind string
	Name string
}

func (e *ExistsError) Error() string { return fmt.Sprintf("%s %q exists already", e.Kind, e.Name) }

// EventConflictError says that an event_id was used before for other content.
// Nothing of the batch was stored.
type EventConflictError struct {
	EventID string
	Index   int // of the event in the batch
	Seq     Seq // of the event that has the id; 0 if it is in the same batch
}

func (e *EventConflictError) Error() string {
	if e.Seq == 0 {
		return fmt.Sprintf("events[%d]: event_id %q is twice in the batch with different content", e.Index, e.EventID)
	}
	return fmt.Sprintf("events[%d]: event_id %q belongs to event %d with different content", e.Index, e.EventID, e.Seq)
}

// HeadMismatchError says that the log was not where the writer expected it.
type HeadMismatchError struct{ Expected, Actual Seq }

func (e *HeadMismatchError) Error() string {
	return fmt.Sprintf("expected_head is %d but the log's head is %d", e.Expected, e.Actual)
}

// ConflictError says that another writer of the session came first. Nothing was stored, and
// the same call may be repeated.
type ConflictError struct {
	Session string
	What    string // what was to be written: "artifact k/1/i"
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("another writer of session %q came before %s", e.Session, e.What)
}

// LostError says that a log is not, or no longer, the one that a client knows: it is
// gone, another has its id, it ends before what the client saw, or has other events there.
// Nothing was stored.
type LostError struct {
	Session string
	// Known is the newest event that the client knows of, Head that of the log now; 0
	// if there is none.
	Known, Head Seq
	// Replaced is set if the session is another, Rewritten if other events are in the place of
	// those that the client knows.
	Replaced, Rewritten bool
}

func (e *LostError) Error() string {
	what := "the store has none of them"
	switch {
	case e.Replaced:
		what = "another session has its id by now"
	case e.Rewritten:
		what = "the store has others in the place of some of them"
	case e.Head > 0:
		what = fmt.Sprintf("the store has %d of them", e.Head)
	}
	return fmt.Sprintf("the log of session %q is lost: the client knows %d events, and %s", e.Session, e.Known, what)
}

// InvalidError says which field of the input is wrong and why. Nothing was
// stored.
type InvalidError struct {
	Field  string // a path such as events[2].message.blocks[0].tool_result.call_id
	Reason string
}

func (e *InvalidError) Error() string { return e.Field + ": " + e.Reason }

// in returns the same error seen from one level further out.
func (e *InvalidError) in(format string, args ...any) *InvalidError {
	return &InvalidError{Field: fmt.Sprintf(format, args...) + "." + e.Field, Reason: e.Reason}
}

// UnavailableError says that the store failed and refuses all further work. The
// cause is for the daemon's own diagnostics, not for clients.
type UnavailableError struct {
	Cause error
	// Passing says that the store itself works: it could not do this one thing now, and may later.
	Passing bool
}

func (e *UnavailableError) Error() string {
	if e.Passing {
		return fmt.Sprintf("store cannot be reached now: %v", e.Cause)
	}
	return fmt.Sprintf("store has failed: %v", e.Cause)
}

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Cause }

// FullError says that the store's medium is full: nothing is taken in until there is room,
// and reading and deleting go on. Nothing was stored.
type FullError struct{}

func (*FullError) Error() string {
	return "the store's disk is full: nothing is stored until there is room on it; reading and deleting go on"
}

// ReadOnlyError says that a store was opened only to be read. Nothing was stored.
type ReadOnlyError struct {
	// Needed is what would have to be written for a call that only reads; empty for others.
	Needed string
}

func (e *ReadOnlyError) Error() string {
	const text = "the store was opened only to be read"
	if e.Needed == "" {
		return text
	}
	return text + ", and " + e.Needed
}

// CorruptError says that a store's medium gave back something other than what
// the store wrote. The reason is for the daemon's own diagnostics.
type CorruptError struct {
	// Session is the one that cannot be read whole; empty where it is not known.
	Session string
	What    string // what was being read
	Reason  string
	// Deleted says that a session was deleted all the same, and only bytes of it stay on the disk.
	Deleted bool
}

func (e *CorruptError) Error() string {
	text := fmt.Sprintf("%s is corrupt: %s", e.What, e.Reason)
	if name := fmt.Sprintf("session %q", e.Session); e.Session != "" && e.What != name {
		text = name + ": " + text
	}
	return text
}
