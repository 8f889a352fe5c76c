package cli

import (
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/contextd/contextd/cmd/contextd/internal/daemon"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/logcopy"
	"github.com/contextd/contextd/internal/log/pglog"
)

// The exit codes.
const (
	ExitOK           = 0
	ExitFailure      = 1
	ExitUsage        = 2
	ExitNotFound     = 3
	ExitPrecondition = 4
	ExitUnavailable  = 5
	// ExitUnfinished is for a daemon that stopped before all calls had ended.
	ExitUnfinished = 6
	// ExitAtOnce is for a program that a second signal ended.
	ExitAtOnce = 7
)

// usageError is an error of the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// noInputError is that of a file to read that does not exist.
type noInputError struct{ error }

func (e *noInputError) Unwrap() error { return e.error }

func exitCode(err error) int {
	if _, ok := errors.AsType[usageError](err); ok {
		return ExitUsage
	}
	if _, ok := errors.AsType[*daemon.ConfigurationError](err); ok {
		return ExitUsage
	}
	if errors.Is(err, daemon.ErrUnfinished) {
		return ExitUnfinished
	}
	if _, ok := errors.AsType[*missedError](err); ok {
		return ExitPrecondition
	}
	if _, ok := errors.AsType[*noTranscriptError](err); ok {
		return ExitNotFound
	}
	if _, ok := errors.AsType[*noInputError](err); ok {
		return ExitNotFound
	}
	if _, ok := errors.AsType[*disklog.LockedError](err); ok {
		return ExitUnavailable
	}
	if _, ok := errors.AsType[*pglog.AddressError](err); ok {
		return ExitUsage
	}
	if _, ok := errors.AsType[*pglog.ConnectError](err); ok {
		return ExitUnavailable
	}
	if _, ok := errors.AsType[*pglog.SchemaError](err); ok {
		return ExitPrecondition
	}
	if _, ok := errors.AsType[*pglog.CopyingError](err); ok {
		return ExitPrecondition
	}
	if _, ok := errors.AsType[*logcopy.DifferentError](err); ok {
		return ExitPrecondition
	}
	if _, ok := errors.AsType[*logcopy.UnfinishedError](err); ok {
		return ExitPrecondition
	}
	if _, ok := errors.AsType[*logcopy.MeanwhileError](err); ok {
		return ExitPrecondition
	}
	if _, ok := errors.AsType[*eventlog.UnavailableError](err); ok {
		return ExitUnavailable
	}
	st, ok := statusOf(err)
	if !ok {
		return ExitFailure
	}
	switch st.Code() {
	case codes.InvalidArgument, codes.OutOfRange:
		return ExitUsage
	case codes.NotFound:
		return ExitNotFound
	case codes.FailedPrecondition, codes.Aborted, codes.AlreadyExists:
		return ExitPrecondition
	case codes.Unavailable:
		return ExitUnavailable
	default:
		return ExitFailure
	}
}

// statusOf finds the gRPC status in an error, with the status's own message.
func statusOf(err error) (*status.Status, bool) {
	var s interface{ GRPCStatus() *status.Status }
	if !errors.As(err, &s) {
		return nil, false
	}
	return s.GRPCStatus(), true
}
