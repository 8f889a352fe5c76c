package client

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// Kinds of failed calls, for errors.Is.
var (
	// ErrInvalid: a field breaks a rule of the API; Error.Field names it.
	ErrInvalid = errors.New("invalid argument")
	// ErrNotFound: there is no such session, event, projection or pointer.
	ErrNotFound = errors.New("not found")
	// ErrAlreadyExists: the session's id is taken, or an event's id by another event.
	ErrAlreadyExists = errors.New("already exists")
	// ErrHeadMismatch: the newest seq is not expected_head but Error.Number("head_seq").
	ErrHeadMismatch = errors.New("another head")
	// ErrLogLost: the log is no longer the one that this client appended to or read. It is gone, another
	// session has its id, it is shorter, or it has other events in their place. Nothing was appended.
	// A client that has the whole conversation calls Client.Forget and appends all of it again.
	ErrLogLost = errors.New("the log was lost")
	// ErrBudgetExceeded: the context cannot be made to fit; Error.Exceeded lists what cannot be reduced.
	ErrBudgetExceeded = errors.New("budget exceeded")
	// ErrLimit: the request is beyond a limit of the daemon.
	ErrLimit = errors.New("limit exceeded")
	// ErrUnavailable: the daemon cannot be reached, is shutting down, or its store failed.
	ErrUnavailable = errors.New("unavailable")
	// ErrDenied: the daemon does not know the caller, or the caller may not do this.
	ErrDenied = errors.New("denied")
	// ErrDataLoss: the daemon read other data from its disk than it had written.
	ErrDataLoss = errors.New("data loss")
)

// ErrIntegrity is the error if the bytes of a context do not have the daemon's hash, or the stream ended early. The
// client drops what it kept of this context, so that the next assembly asks for all of it.
var ErrIntegrity = errors.New("the context is not what was sent")

var kindsOfReasons = map[string]error{
	"HEAD_MISMATCH":   ErrHeadMismatch,
	"LOG_LOST":        ErrLogLost,
	"BUDGET_EXCEEDED": ErrBudgetExceeded,
}

var kindsOfCodes = map[codes.Code]error{
	codes.InvalidArgument:   ErrInvalid,
	codes.OutOfRange:        ErrInvalid,
	codes.NotFound:          ErrNotFound,
	codes.AlreadyExists:     ErrAlreadyExists,
	codes.ResourceExhausted: ErrLimit,
	codes.Unavailable:       ErrUnavailable,
	codes.Unauthenticated:   ErrDenied,
	codes.PermissionDenied:  ErrDenied,
	codes.DataLoss:          ErrDataLoss,
	codes.Canceled:          context.Canceled,
	codes.DeadlineExceeded:  context.DeadlineExceeded,
}

// Error is a call that the daemon, or gRPC on the way to it, refused.
type Error struct {
	// Code and Message are those of the gRPC status.
	Code    codes.Code
	Message string
	// Reason is the API's stable word, such as INVALID_FIELD; docs/api-errors.md lists them.
	// Empty: the error is gRPC's own.
	Reason string
	// Metadata are the reason's details, such as setting, limit and actual.
	Metadata map[string]string
	// Violations are the fields that break a rule.
	Violations []Violation
	// Resource is the name of what was not found or exists already. Empty: none.
	Resource string
	// RetryAfter is after which time another try may succeed. 0: waiting does not help, or it is
	// unknown how long.
	RetryAfter time.Duration
	// Exceeded says what keeps a context above its budget. nil: the error is another one.
	Exceeded *contextdv1.BudgetExceeded

	status *status.Status
}

// Violation is a field of a request that breaks a rule.
type Violation struct {
	// Field is its path, such as events[2].message.blocks[0].text.
	Field string
	// Description is the rule.
	Description string
}

// AsError converts the error of a call that was made with the generated stubs into an *Error. address
// is the daemon's. An error without a gRPC status is returned unchanged.
func AsError(err error, address string) error {
	st, ok := status.FromError(err)
	if !ok {
		return err
	}
	e := &Error{Code: st.Code(), Message: st.Message(), status: st}
	for _, d := range st.Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			e.Reason, e.Metadata = d.GetReason(), d.GetMetadata()
		case *errdetails.BadRequest:
			for _, v := range d.GetFieldViolations() {
				e.Violations = append(e.Violations, Violation{Field: v.GetField(), Description: v.GetDescription()})
			}
		case *errdetails.ResourceInfo:
			e.Resource = d.GetResourceName()
		case *errdetails.RetryInfo:
			e.RetryAfter = d.GetRetryDelay().AsDuration()
		case *contextdv1.BudgetExceeded:
			e.Exceeded = d
		}
	}
	if e.unanswered() {
		e.Message = unansweredMessage(address, dialCause(e.Message))
	}
	return e
}

// unansweredMessage says why no daemon answered at an address, and what to do.
func unansweredMessage(address, cause string) string {
	if strings.HasPrefix(address, "unix:") && strings.Contains(strings.ToLower(cause), "permission denied") {
		return fmt.Sprintf("no permission to connect to %s (%s): call as the socket's owner, or have the daemon admit others by unix_socket_mode", address, cause)
	}
	if strings.Contains(cause, remoteAlert) && strings.Contains(cause, "certificate") {
		return fmt.Sprintf("no connection with %s (%s): CONTEXTD_CERT and CONTEXTD_KEY must be a certificate for clients that is valid now, of an authority in the daemon's tls_client_ca", address, cause)
	}
	if !strings.HasPrefix(address, "unix:") && (strings.Contains(cause, "handshake") || strings.Contains(cause, "server preface")) {
		return fmt.Sprintf("no connection with %s (%s): if the daemon there speaks TLS, CONTEXTD_CA must name the authority of its certificate; if it does not, it must be empty", address, cause)
	}
	return fmt.Sprintf("no daemon answers at %s (%s): start one with \"contextd serve\", or set %s", address, cause, AddressEnv)
}

// dialCause returns why a connection failed, without the prefixes that gRPC adds.
func dialCause(message string) string {
	message = strings.TrimSuffix(message, `"`)
	for _, layer := range []string{`connection error: desc = "`, "transport: ", "Error while dialing: "} {
		message = strings.TrimPrefix(message, layer)
	}
	return message
}

// Error implements error.
func (e *Error) Error() string { return e.Code.String() + ": " + e.Message }

// GRPCStatus returns the original status, for status.FromError.
func (e *Error) GRPCStatus() *status.Status { return e.status }

// Is reports whether target is the kind of the error.
func (e *Error) Is(target error) bool {
	kind, ok := kindsOfReasons[e.Reason]
	return ok && target == kind || target != nil && target == kindsOfCodes[e.Code]
}

// Field returns the first field that breaks a rule; empty if none is named.
func (e *Error) Field() string {
	if len(e.Violations) == 0 {
		return ""
	}
	return e.Violations[0].Field
}

// Number returns a number of the metadata, such as head_seq; 0 if there is none.
func (e *Error) Number(name string) uint64 {
	n, err := strconv.ParseUint(e.Metadata[name], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// unanswered reports whether no daemon answered: a daemon's error has a reason.
func (e *Error) unanswered() bool { return e.Code == codes.Unavailable && e.Reason == "" }

// mayPass reports whether the same call may succeed a little later.
func (e *Error) mayPass() bool { return e.RetryAfter > 0 || e.unanswered() }
