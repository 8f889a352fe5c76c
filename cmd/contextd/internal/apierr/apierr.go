// Package apierr maps domain errors to gRPC statuses. Convert is the only place that does
// so; an error that is not in its table becomes INTERNAL, without its cause.
//
// docs/api-errors.md is the table in prose. A test holds the two together.
package apierr

import (
	"errors"
	"fmt"
	"time"
)

// Domain is the domain of every ErrorInfo.
const Domain = "contextd"

// The stable reasons of ErrorInfo. Clients may switch over them; none is ever
// renamed.
const (
	ReasonInvalidField      = "INVALID_FIELD"
	ReasonTranscript        = "TRANSCRIPT_UNREADABLE"
	ReasonNotBuilt          = "NOT_BUILT"
	ReasonSessionNotFound   = "SESSION_NOT_FOUND"
	ReasonNotFound          = "NOT_FOUND"
	ReasonSessionExists     = "SESSION_EXISTS"
	ReasonEventIDConflict   = "EVENT_ID_CONFLICT"
	ReasonKeyConflict       = "IDEMPOTENCY_KEY_CONFLICT"
	ReasonHeadMismatch      = "HEAD_MISMATCH"
	ReasonWriteConflict     = "WRITE_CONFLICT"
	ReasonLogLost           = "LOG_LOST"
	ReasonBudgetExceeded    = "BUDGET_EXCEEDED"
	ReasonInjectionOversize = "INJECTION_OVER_RESERVE"
	ReasonNothingShown      = "NOTHING_SHOWN"
	ReasonNotConfigured     = "NOT_CONFIGURED"
	ReasonSummarizer        = "SUMMARIZER_UNAVAILABLE"
	ReasonNoSummary         = "SUMMARY_FAILED"
	ReasonLimit             = "LIMIT_EXCEEDED"
	ReasonBusy              = "BUSY"
	ReasonSlow              = "CLIENT_TOO_SLOW"
	ReasonStoreFailed       = "STORE_FAILED"
	ReasonStoreBusy         = "STORE_BUSY"
	ReasonBackupEnded       = "BACKUP_ENDED"
	ReasonDiskFull          = "DISK_FULL"
	ReasonReadOnly          = "READ_ONLY"
	ReasonDataCorrupt       = "DATA_CORRUPT"
	ReasonStoredVersion     = "STORED_VERSION"
	ReasonDraining          = "DRAINING"
	ReasonUnauthenticated   = "UNAUTHENTICATED"
	ReasonDenied            = "PERMISSION_DENIED"
	ReasonCanceled          = "CANCELED"
	ReasonDeadline          = "DEADLINE_EXCEEDED"
	ReasonInternal          = "INTERNAL"
	ReasonTransport         = "TRANSPORT"
)

// ErrDraining is returned by everything that begins, or waits, while the daemon
// shuts down.
var ErrDraining = errors.New("the daemon is shutting down")

// LimitError says that a request is beyond a configured limit.
type LimitError struct {
	// Field is the request's field that is too large; empty if no field is at
	// fault.
	Field string
	// Setting is the configuration key of the limit, as in the file.
	Setting       string
	Limit, Actual uint64
	Unit          string
}

func (e *LimitError) Error() string {
	s := fmt.Sprintf("%d %s are more than the %d that %s allows", e.Actual, e.Unit, e.Limit, e.Setting)
	if e.Field != "" {
		s = e.Field + ": " + s
	}
	return s
}

// SlowError says that a client did not do its part of a call in time.
type SlowError struct {
	// Setting is the configuration key of the time, as in the file.
	Setting string
	After   time.Duration
	// What did not happen.
	What string
}

func (e *SlowError) Error() string {
	return fmt.Sprintf("%s within %s (%s)", e.What, e.After, e.Setting)
}

// NotConfiguredError says that the daemon's configuration lacks what a request
// needs.
type NotConfiguredError struct {
	// Setting is the configuration key that is missing, as in the file.
	Setting string
	Reason  string
}

func (e *NotConfiguredError) Error() string { return e.Reason }
