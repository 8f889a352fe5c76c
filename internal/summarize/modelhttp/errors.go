package modelhttp

import (
	"fmt"
	"strings"
	"time"

	"github.com/contextd/contextd/internal/summarize"
)

// StatusError says that the endpoint answered with a failure. It wraps
// summarize.ErrPermanent where the same request would fail again.
type StatusError struct {
	// Endpoint is the address without user, password and query.
	Endpoint string
	Status   int
	// Code, Message and RequestID are the provider's, where they could be shown;
	// empty otherwise.
	Code, Message, RequestID string
	// RetryAfter is how long the endpoint asked to wait; 0 if it did not.
	RetryAfter time.Duration
	// Permanent says that the same request would fail again.
	Permanent bool
}

func (e *StatusError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s answered %d", e.Endpoint, e.Status)
	if e.Code != "" {
		b.WriteString(" " + e.Code)
	}
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	if e.RequestID != "" {
		b.WriteString(" (request " + e.RequestID + ")")
	}
	return b.String()
}

// RetryDelay is how long the endpoint asked to wait; 0 if it did not.
func (e *StatusError) RetryDelay() time.Duration { return e.RetryAfter }

// Is holds for summarize.ErrPermanent if the failure is.
func (e *StatusError) Is(target error) bool { return target == summarize.ErrPermanent && e.Permanent }

// AnswerError says that what the endpoint answered is of no use. It wraps
// summarize.ErrPermanent where the same request would be answered alike.
type AnswerError struct {
	Endpoint  string
	Reason    string
	Permanent bool
}

func (e *AnswerError) Error() string { return e.Endpoint + ": " + e.Reason }

// Is holds for summarize.ErrPermanent if the failure is.
func (e *AnswerError) Is(target error) bool { return target == summarize.ErrPermanent && e.Permanent }

// TransportError says that no answer came: no connection, a broken one, or none
// within the time of an attempt.
type TransportError struct {
	Endpoint string
	Cause    error
}

func (e *TransportError) Error() string { return e.Endpoint + ": " + e.Cause.Error() }

// Unwrap returns the cause.
func (e *TransportError) Unwrap() error { return e.Cause }

// TimeoutError is the cause where an attempt took longer than its limit.
type TimeoutError struct{ Limit time.Duration }

func (e *TimeoutError) Error() string { return fmt.Sprintf("no whole answer within %v", e.Limit) }

// Timeout is true, as of every error of the kind.
func (e *TimeoutError) Timeout() bool { return true }

// PacedError says that the rate limit would let the request through only after its
// deadline. Nothing was sent.
type PacedError struct{ RequestsPerMinute float64 }

func (e *PacedError) Error() string {
	return fmt.Sprintf("no turn before the deadline at %g requests a minute", e.RequestsPerMinute)
}
