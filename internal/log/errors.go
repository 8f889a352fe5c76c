package log

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// ErrClosed is returned by every method of a store that has been closed.
var ErrClosed = errors.New("store is closed")

// NotFoundError says that a named thing does not exist.
type NotFoundError struct {
	Kind string // "session", "artifact", "event"
	Name string
	// There says what exists instead, such as "the log has events 1 to 7"; may be empty.
	There string
}

func (e *NotFoundError) Error() string {
	text := fmt.Sprintf("%s %q does not exist", e.Kind, e.Name)
	if e.There != "" {
		text += "; " + e.There
	}
	return text
}

// IsMissing reports whether an error says that something does not exist that is of one of these kinds, or of any kind
// if none is given.
func IsMissing(err error, kinds ...string) bool {
	missing, ok := errors.AsType[*NotFoundError](err)
	return ok && (len(kinds) == 0 || slices.Contains(kinds, missing.Kind))
}

// EventsThere returns a text for NotFoundError.There: which events a log has.
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

// NoSession returns the error for an id that no session has.
func NoSession(id string) error { return &NotFoundError{Kind: "session", Name: id} }

// NoEvent returns the error for a seq that is not in the log.
func NoEvent(seq Seq) *NotFoundError {
	return &NotFoundError{Kind: "event", Name: strconv.FormatUint(uint64(seq), 10)}
}

// ExistsError says that something cannot be made because its name is taken.
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

// HeadMismatchError says that the log's head is not the one that the writer expected.
type HeadMismatchError struct{ Expected, Actual Seq }

func (e *HeadMismatchError) Error() string {
	return fmt.Sprintf("expected_head is %d but the log's head is %d", e.Expected, e.Actual)
}

// ConflictError says that another writer of the session came first. Nothing was stored. The call may be repeated,
// unless an artifact's New was the reason: then it fails again.
type ConflictError struct {
	Session string
	What    string // what was not written, such as "artifact k/1/i"
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("another writer of session %q came before %s", e.Session, e.What)
}

// LostError says that a log is not the one that a client knows: it does not exist any more, another session has its
// id, it ends before the last event that the client saw, or it has other events in their place. Nothing was stored.
type LostError struct {
	Session string
	// Known is the newest event that the client knows, Head the newest of the log now; 0 if there is none.
	Known, Head Seq
	// Replaced is set if another session has the id, Rewritten if other events are in the place of those that the
	// client knows.
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

// InvalidError says which field of the input is wrong, and why. Nothing was stored.
type InvalidError struct {
	Field  string // a path such as events[2].message.blocks[0].tool_result.call_id
	Reason string
}

func (e *InvalidError) Error() string { return e.Field + ": " + e.Reason }

// in returns the error with its field as a part of a larger one.
func (e *InvalidError) in(format string, args ...any) *InvalidError {
	return &InvalidError{Field: fmt.Sprintf(format, args...) + "." + e.Field, Reason: e.Reason}
}

// UnavailableError says that the store failed and refuses all further work, unless Passing is set. The cause is for
// the daemon's log, not for clients.
type UnavailableError struct {
	Cause error
	// Passing says that the store has not failed: it could not do this one thing, and may be able to later.
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

// FullError says that the store's medium is full. Nothing was stored, and nothing will be until there is room;
// reading and deleting still work.
type FullError struct{}

func (*FullError) Error() string {
	return "the store's disk is full: nothing is stored until there is room on it; reading and deleting go on"
}

// ReadOnlyError says that a store was opened for reading only. Nothing was stored.
type ReadOnlyError struct {
	// Needed says what the store would have to write for a call that only reads; empty for other calls.
	Needed string
}

func (e *ReadOnlyError) Error() string {
	const text = "the store was opened only to be read"
	if e.Needed == "" {
		return text
	}
	return text + ", and " + e.Needed
}

// CorruptError says that a store's medium returned something other than what the store wrote. The reason is for the
// daemon's log, not for clients.
type CorruptError struct {
	// Session is the session that cannot be read; empty if that is unknown.
	Session string
	What    string // what was being read
	Reason  string
	// Deleted says that the session was deleted nonetheless, but some of its bytes stay on the disk.
	Deleted bool
}

func (e *CorruptError) Error() string {
	text := fmt.Sprintf("%s is corrupt: %s", e.What, e.Reason)
	if name := fmt.Sprintf("session %q", e.Session); e.Session != "" && e.What != name {
		text = name + ": " + text
	}
	return text
}
