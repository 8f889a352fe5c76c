package summarize

import (
	"errors"
	"fmt"

	eventlog "github.com/contextd/contextd/internal/log"
)

// ErrPermanent marks failures of a backend that a further attempt with the same
// request would only repeat.
var ErrPermanent = errors.New("permanent failure")

// ErrClosed is returned for work that a scheduler did not finish before it closed.
// The work is taken up again after the next start.
var ErrClosed = errors.New("summaries are shut down")

// endedError is that of a request that was given up for no fault of the summarizer:
// the scheduler closes, or the session was deleted.
type endedError struct{ cause error }

func (e *endedError) Error() string { return e.cause.Error() }

// Unwrap returns the cause.
func (e *endedError) Unwrap() error { return e.cause }

// RejectedError says why a text is not taken for a summary. Another attempt at the
// same span is not made.
type RejectedError struct{ Reason string }

func (e *RejectedError) Error() string { return "summary rejected: " + e.Reason }

// BreakerOpenError says that a summarizer failed too often in a row to be asked now.
type BreakerOpenError struct{ Summarizer string }

func (e *BreakerOpenError) Error() string {
	return fmt.Sprintf("summarizer %q failed several times in a row and is left alone for a while", e.Summarizer)
}

// InputLimitError says that max_input_tokens leaves no room for the material.
type InputLimitError struct {
	Max uint64
	// Needed is what the instructions take, with the least that is of use beside
	// them.
	Needed uint64
}

func (e *InputLimitError) Error() string {
	return fmt.Sprintf("max_input_tokens is %d; the instructions and the least material take %d", e.Max, e.Needed)
}

// Unwrap returns ErrPermanent: a further attempt meets the same limit.
func (e *InputLimitError) Unwrap() error { return ErrPermanent }

// FailedError says that a span was tried before and is not tried again.
type FailedError struct {
	From, To   eventlog.Seq
	Summarizer string
	Attempts   int
	// Reason is why the last attempt failed.
	Reason string
}

func (e *FailedError) Error() string {
	return fmt.Sprintf("events %d to %d are not summarised by %q again (attempts: %d): %s", e.From, e.To, e.Summarizer, e.Attempts, e.Reason)
}
