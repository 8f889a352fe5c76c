// Package apierr maps domain errors to gRPC statuses. Only Convert does that. An error that is not in its
// table becomes INTERNAL, without its cause.
//
// docs/api-errors.md has the same table in prose; a test compares the two.
package apierr

import (
	"errors"
	"fmt"
	"time"
)

// Domain is the domain of every ErrorInfo.
const Domain = "contextd"

// The stable reasons of ErrorInfo. Clients may switch on them, so none is ever renamed.
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

// ErrDraining is returned by calls that begin, or still wait, while the daemon shuts down.
var ErrDraining = errors.New("the daemon is shutting down")

// LimitError reports that a request exceeds a configured limit.
type LimitError struct {
	// Field is the request's field that is too large; empty if it is not a single field.
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

// SlowError reports that a client did not send or receive in time.
type SlowError struct {
	// Setting is the configuration key of the timeout, as in the file.
	Setting string
	After   time.Duration
	// What says what did not happen.
	What string
}

func (e *SlowError) Error() string {
	return fmt.Sprintf("%s within %s (%s)", e.What, e.After, e.Setting)
}

// NotConfiguredError reports that a request needs something that is not configured.
type NotConfiguredError struct {
	// Setting is the configuration key that is missing, as in the file.
	Setting string
	Reason  string
}

func (e *NotConfiguredError) Error() string { return e.Reason }
