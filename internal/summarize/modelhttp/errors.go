package modelhttp

import (
	"fmt"
	"strings"
	"time"

	"github.com/contextd/contextd/internal/summarize"
)

// StatusError says that the endpoint answered with a failure. It is summarize.ErrPermanent if the same request would
// fail again.
type StatusError struct {
	// Endpoint is the address without user, password and query.
	Endpoint string
	Status   int
	// Code, Message and RequestID are the provider's; empty if they must not be shown.
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

// RetryDelay returns how long the endpoint asked to wait; 0 if it did not.
func (e *StatusError) RetryDelay() time.Duration { return e.RetryAfter }

// Is holds for summarize.ErrPermanent if the failure is.
func (e *StatusError) Is(target error) bool { return target == summarize.ErrPermanent && e.Permanent }

// AnswerError says that the endpoint's answer is of no use. It is summarize.ErrPermanent if the same request would
// get the same kind of answer.
type AnswerError struct {
	Endpoint  string
	Reason    string
	Permanent bool
}

func (e *AnswerError) Error() string { return e.Endpoint + ": " + e.Reason }

// Is holds for summarize.ErrPermanent if the failure is.
func (e *AnswerError) Is(target error) bool { return target == summarize.ErrPermanent && e.Permanent }

// TransportError says that no answer came: there was no connection, it broke, or the attempt took too long.
type TransportError struct {
	Endpoint string
	Cause    error
}

func (e *TransportError) Error() string { return e.Endpoint + ": " + e.Cause.Error() }

// Unwrap returns the cause.
func (e *TransportError) Unwrap() error { return e.Cause }

// TimeoutError is the cause if an attempt took longer than its limit.
type TimeoutError struct{ Limit time.Duration }

func (e *TimeoutError) Error() string { return fmt.Sprintf("no whole answer within %v", e.Limit) }

// Timeout returns true, as for every timeout of package net.
func (e *TimeoutError) Timeout() bool { return true }

// PacedError says that the rate limit would permit the request only after its deadline. Nothing was sent.
type PacedError struct{ RequestsPerMinute float64 }

func (e *PacedError) Error() string {
	return fmt.Sprintf("no turn before the deadline at %g requests a minute", e.RequestsPerMinute)
}
