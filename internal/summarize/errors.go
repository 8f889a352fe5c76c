package summarize

import (
	"errors"
	"fmt"
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
)

// ErrPermanent marks failures of a backend that the same request would meet again.
var ErrPermanent = errors.New("permanent failure")

// ErrClosed is returned for work that a scheduler did not finish before it closed. If a backend was asked already,
// the work goes on after the next start.
var ErrClosed = errors.New("summaries are shut down")

// endedError is the error of a request that was canceled although the summarizer did not fail: the scheduler closes,
// or the session was deleted.
type endedError struct{ cause error }

func (e *endedError) Error() string { return e.cause.Error() }

// Unwrap returns the cause.
func (e *endedError) Unwrap() error { return e.cause }

// BackendError says that a summarizer produced no usable text.
type BackendError struct {
	Summarizer string
	// Permanent says that waiting does not help: the same request would fail again.
	Permanent bool
	// RetryAfter is how long to wait before the summarizer is asked again, if Permanent is not set.
	RetryAfter time.Duration
	// Cause may be shown to clients: backends put no secrets in it.
	Cause error
}

func (e *BackendError) Error() string {
	return fmt.Sprintf("summarizer %q: %v", e.Summarizer, e.Cause)
}

// Unwrap returns the cause.
func (e *BackendError) Unwrap() error { return e.Cause }

// retryDelay is how long to wait if the cause does not say.
const retryDelay = time.Second

// backendError wraps an error with the summarizer's name, and with whether and when to retry.
func (n *named) backendError(err error) error {
	var open *BreakerOpenError
	var failed *FailedError
	var rejected *RejectedError
	var asked interface{ RetryDelay() time.Duration }
	out := &BackendError{Summarizer: n.name, Cause: err}
	switch {
	case errors.As(err, &failed), errors.As(err, &rejected), errors.Is(err, ErrPermanent):
		out.Permanent = true
	case errors.As(err, &open):
		out.RetryAfter = n.CoolDown
	case errors.As(err, &asked):
		out.RetryAfter = max(asked.RetryDelay(), retryDelay)
	default:
		out.RetryAfter = retryDelay
	}
	return out
}

// UnknownError says that no summarizer with a name is configured.
type UnknownError struct{ Summarizer string }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("no summarizer %q is configured", e.Summarizer)
}

// RejectedError says why a text is not accepted as a summary. There is no further attempt at the span.
type RejectedError struct{ Reason string }

func (e *RejectedError) Error() string { return "summary rejected: " + e.Reason }

// BreakerOpenError says that a summarizer is not asked now, because it failed too often in a row.
type BreakerOpenError struct{ Summarizer string }

func (e *BreakerOpenError) Error() string {
	return fmt.Sprintf("summarizer %q failed several times in a row and is left alone for a while", e.Summarizer)
}

// InputLimitError says that max_input_tokens leaves no room for the material.
type InputLimitError struct {
	Max uint64
	// Needed is the size of the instructions and of the least useful material.
	Needed uint64
}

func (e *InputLimitError) Error() string {
	return fmt.Sprintf("max_input_tokens is %d; the instructions and the least material take %d", e.Max, e.Needed)
}

// Unwrap returns ErrPermanent, because a further attempt meets the same limit.
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
