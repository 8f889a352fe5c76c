package apierr

import (
	"strconv"
	"time"
	"unicode/utf8"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"
)

// A status is sent in HTTP headers, which some clients cap at 8 KiB in total.
const (
	maxText       = 512
	maxStatus     = 4 << 10 // the details are sent as base64, beside the message once more, with other headers
	maxViolations = 8
	maxParts      = 16
)

// drainRetry is when a client may look for the process that replaces this daemon.
const drainRetry = time.Second

// storeRetry is when a client may repeat a call that the store could not serve.
const storeRetry = time.Second

// roomRetry is when a client may try again after the disk was full; an operator has to free space.
const roomRetry = 5 * time.Second

// importRetry is when a client may repeat an import for which there was no memory.
const importRetry = time.Second

// answer is a status that is being built.
type answer struct {
	code       codes.Code
	reason     string
	message    string
	metadata   map[string]string
	violations []*errdetails.BadRequest_FieldViolation
	details    []protoadapt.MessageV1
	retryAfter time.Duration
	// hidden is true if the cause is logged instead of being sent to the client.
	hidden bool
}

// newAnswer returns the answer for err.
func newAnswer(code codes.Code, reason string, err error) *answer {
	a := &answer{code: code, reason: reason}
	if err != nil {
		a.message = err.Error()
	}
	return a
}

func badField(code codes.Code, reason, field, description string, err error) *answer {
	a := newAnswer(code, reason, err)
	a.violation(field, description)
	return a
}

func (a *answer) violation(field, description string) {
	if len(a.violations) < maxViolations {
		a.violations = append(a.violations, &errdetails.BadRequest_FieldViolation{Field: short(field), Description: short(description)})
	}
}

func (a *answer) with(key, value string) *answer {
	if a.metadata == nil {
		a.metadata = map[string]string{}
	}
	a.metadata[key] = short(value)
	return a
}

func (a *answer) number(key string, n uint64) *answer {
	return a.with(key, strconv.FormatUint(n, 10))
}

func (a *answer) resource(kind, name string) *answer {
	a.details = append(a.details, &errdetails.ResourceInfo{ResourceType: kind, ResourceName: short(name)})
	return a
}

// status returns the status. It drops violations for which there is no room, except the first.
func (a *answer) status() *status.Status {
	for {
		st := a.whole()
		if len(a.violations) <= 1 || proto.Size(st.Proto()) <= maxStatus {
			return st
		}
		a.violations = a.violations[:len(a.violations)-1]
	}
}

func (a *answer) whole() *status.Status {
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: a.reason, Domain: Domain, Metadata: a.metadata}}
	if len(a.violations) > 0 {
		details = append(details, &errdetails.BadRequest{FieldViolations: a.violations})
	}
	details = append(details, a.details...)
	if a.retryAfter > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(a.retryAfter)})
	}
	st := status.New(a.code, short(a.message))
	if full, err := st.WithDetails(details...); err == nil {
		return full
	}
	// WithDetails only fails for OK, which is no error.
	return st
}

// short cuts a text for a status, without splitting a rune.
func short(s string) string {
	if len(s) <= maxText {
		return s
	}
	cut := maxText
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// Reason returns the reason of a status that Convert made and, if a limit was exceeded, the limit's setting.
func Reason(st *status.Status) (reason, setting string) {
	for _, detail := range st.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			return info.GetReason(), info.GetMetadata()["setting"]
		}
	}
	return ReasonTransport, ""
}
