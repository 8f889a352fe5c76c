package logcopy

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	eventlog "github.com/contextd/contextd/internal/log"
)

// DifferentError says that a session of the target is not a copy of the source's, or not any more.
type DifferentError struct {
	Session string
	What    string // "event 3 differs"
}

func (e *DifferentError) Error() string {
	return fmt.Sprintf("session %q of the target is not a copy of the source's: %s", e.Session, e.What)
}

// PartError says that some sessions could not be copied, because they are damaged in the source or the target has other
// content under their ids. All other sessions were copied.
type PartError struct {
	failed map[string]error
}

func (e *PartError) Error() string {
	if len(e.failed) == 1 {
		return "1 session could not be copied"
	}
	return fmt.Sprintf("%d sessions could not be copied", len(e.failed))
}

// Unwrap returns an error for each session, which names it, sorted by their ids.
func (e *PartError) Unwrap() []error {
	var all []error
	for _, id := range slices.Sorted(maps.Keys(e.failed)) {
		all = append(all, e.failed[id])
	}
	return all
}

// parentError says that a fork was not copied because its parent was not.
type parentError struct{ session, parent string }

func (e *parentError) Error() string {
	return fmt.Sprintf("session %q is a fork of %q, which could not be copied", e.session, e.parent)
}

// UnfinishedError says that the source is itself the target of an interrupted copy.
type UnfinishedError struct{ Session string }

func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("the source is a copy that was not finished: its session %q is there only while forks are copied", e.Session)
}

// MeanwhileError says that another writer wrote to a session of the target during the copy.
type MeanwhileError struct{ Cause error }

func (e *MeanwhileError) Error() string {
	return fmt.Sprintf("another process writes to the target, such as a second copy: let it end first (%v)", e.Cause)
}

// Unwrap returns the cause.
func (e *MeanwhileError) Unwrap() error { return e.Cause }

// explain returns a *MeanwhileError if the target refused a write because of another writer.
func explain(err error) error {
	if errors.As(err, new(*eventlog.ExistsError)) || errors.As(err, new(*eventlog.HeadMismatchError)) || errors.As(err, new(*eventlog.ConflictError)) {
		return &MeanwhileError{err}
	}
	return err
}
