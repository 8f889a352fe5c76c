package logcopy

import "fmt"

// DifferentError says that a session of the target is not, or is no longer, a copy of the source's.
type DifferentError struct {
	Session string
	What    string // "event 3 differs"
}

func (e *DifferentError) Error() string {
	return fmt.Sprintf("session %q of the target is not a copy of the source's: %s", e.Session, e.What)
}

// UnfinishedError says that the source is itself the target of an interrupted copy.
type UnfinishedError struct{ Session string }

func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("the source is a copy that was not finished: its session %q is there only while forks are copied", e.Session)
}
