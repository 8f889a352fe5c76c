package apierr

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"buf.build/go/protovalidate"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/contextd/contextd/cmd/contextd/internal/auth"
	"github.com/contextd/contextd/internal/artifact"
	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/fair"
	"github.com/contextd/contextd/internal/harness"
	"github.com/contextd/contextd/internal/lifecycle"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/policy"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/summarize"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// Convert returns the status to send for err. hidden is true if the status omits the cause, so that the
// daemon must log it. A status that gRPC made is kept, and gets a reason.
func Convert(err error) (st *status.Status, hidden bool) {
	if err == nil {
		return status.New(codes.OK, ""), false
	}
	for _, convert := range []func(error) *answer{callers, input, state, capacity, availability, summaries, calls} {
		if a := convert(err); a != nil {
			return a.status(), a.hidden
		}
	}
	if st, ok := fromStatus(err); ok {
		return st, false
	}
	a := &answer{code: codes.Internal, reason: ReasonInternal, message: "internal error; the daemon's log has the cause"}
	return a.status(), true
}

// callers are errors about who calls.
func callers(err error) *answer {
	if _, ok := errors.AsType[*auth.UnauthenticatedError](err); ok {
		return newAnswer(codes.Unauthenticated, ReasonUnauthenticated, err)
	}
	if _, ok := errors.AsType[*auth.DeniedError](err); ok {
		return newAnswer(codes.PermissionDenied, ReasonDenied, err)
	}
	return nil
}

// input is errors that the client can fix in its request.
func input(err error) *answer {
	if rules, ok := errors.AsType[*protovalidate.ValidationError](err); ok {
		return fromRules(rules)
	}
	if invalid, ok := errors.AsType[*eventlog.InvalidError](err); ok {
		a := badField(codes.InvalidArgument, ReasonInvalidField, invalid.Field, invalid.Reason, err)
		if unknown, ok := errors.AsType[*policy.UnknownError](err); ok {
			a.with("unknown", unknown.Name).with("known", strings.Join(unknown.Known, ","))
		}
		return a
	}
	if spec, ok := errors.AsType[*budget.SpecError](err); ok {
		return badField(codes.InvalidArgument, ReasonInvalidField, "budget."+spec.Field, spec.Reason, err)
	}
	if format, ok := errors.AsType[*harness.FormatError](err); ok {
		return badField(codes.InvalidArgument, ReasonTranscript, "data", format.Reason, err)
	}
	return nil
}

// state is unmet preconditions.
func state(err error) *answer {
	if missing, ok := errors.AsType[*eventlog.NotFoundError](err); ok {
		reason := ReasonNotFound
		if missing.Kind == "session" {
			reason = ReasonSessionNotFound
		}
		a := newAnswer(codes.NotFound, reason, err)
		return a.resource(missing.Kind, missing.Name)
	}
	if exists, ok := errors.AsType[*eventlog.ExistsError](err); ok {
		a := newAnswer(codes.AlreadyExists, ReasonSessionExists, err)
		return a.resource(exists.Kind, exists.Name)
	}
	if conflict, ok := errors.AsType[*eventlog.EventConflictError](err); ok {
		field := "events[" + strconv.Itoa(conflict.Index) + "].event_id"
		a := badField(codes.AlreadyExists, ReasonEventIDConflict, field, "was used before for other content", err)
		return a.with("event_id", conflict.EventID).number("seq", uint64(conflict.Seq))
	}
	if key, ok := errors.AsType[*records.KeyConflictError](err); ok {
		a := badField(codes.AlreadyExists, ReasonKeyConflict, "idempotency_key", "was used before for another request", err)
		if key.Kind == records.KeyedProjection {
			a = a.with("projection_id", key.Name)
		}
		return a.resource(key.Kind, key.Name)
	}
	if head, ok := errors.AsType[*eventlog.HeadMismatchError](err); ok {
		a := badField(codes.Aborted, ReasonHeadMismatch, "expected_head", "read the log from there and make the call again", err)
		return a.number("expected_head", uint64(head.Expected)).number("head_seq", uint64(head.Actual))
	}
	if writer, ok := errors.AsType[*eventlog.ConflictError](err); ok {
		a := newAnswer(codes.Aborted, ReasonWriteConflict, err)
		a.retryAfter = storeRetry
		return a.resource("session", writer.Session)
	}
	if errors.Is(err, disklog.ErrSnapshotEnded) {
		a := newAnswer(codes.Aborted, ReasonBackupEnded, disklog.ErrSnapshotEnded)
		a.retryAfter = storeRetry
		return a
	}
	if nothing, ok := errors.AsType[*assemble.NothingShownError](err); ok {
		return newAnswer(codes.FailedPrecondition, ReasonNothingShown, err).number("tokens", nothing.Tokens)
	}
	if lost, ok := errors.AsType[*eventlog.LostError](err); ok {
		a := badField(codes.FailedPrecondition, ReasonLogLost, "known", "append everything again, without it", err)
		return a.number("known_seq", uint64(lost.Known)).number("head_seq", uint64(lost.Head)).resource("session", lost.Session)
	}
	if unread, ok := errors.AsType[*lifecycle.LostError](err); ok {
		a := badField(codes.FailedPrecondition, ReasonLogLost, unread.Field, "start at number 0, without it", err)
		return a.resource("session", unread.SessionID)
	}
	if lacking, ok := errors.AsType[*NotConfiguredError](err); ok {
		return newAnswer(codes.FailedPrecondition, ReasonNotConfigured, err).with("setting", lacking.Setting)
	}
	if _, ok := errors.AsType[*eventlog.ReadOnlyError](err); ok {
		return newAnswer(codes.FailedPrecondition, ReasonReadOnly, err)
	}
	if version, ok := errors.AsType[*artifact.VersionError](err); ok {
		a := newAnswer(codes.FailedPrecondition, ReasonStoredVersion, err)
		return a.number("version", uint64(version.Version)).number("readable", uint64(version.Readable))
	}
	return nil
}

// capacity is what exceeds a budget or a limit.
func capacity(err error) *answer {
	if over, ok := errors.AsType[*assemble.BudgetError](err); ok {
		a := newAnswer(codes.FailedPrecondition, ReasonBudgetExceeded, err)
		a.details = append(a.details, budgetExceeded(over))
		return a.number("target_tokens", over.Target).number("needed_tokens", over.Needed)
	}
	if injection, ok := errors.AsType[*assemble.InjectionError](err); ok {
		a := newAnswer(codes.FailedPrecondition, ReasonInjectionOversize, err)
		a.with("injection", injection.Name)
		return a.number("tokens", injection.Tokens).number("reserve_tokens", injection.Reserve)
	}
	if transcript, ok := errors.AsType[*harness.LimitError](err); ok {
		return importLimit(transcript, err)
	}
	if limit, ok := errors.AsType[*LimitError](err); ok {
		a := newAnswer(codes.ResourceExhausted, ReasonLimit, err)
		if limit.Field != "" {
			a = badField(codes.ResourceExhausted, ReasonLimit, limit.Field, limit.Error(), err)
		}
		return a.with("setting", limit.Setting).number("limit", limit.Limit).number("actual", limit.Actual)
	}
	if busy, ok := errors.AsType[*fair.BusyError](err); ok {
		a := newAnswer(codes.ResourceExhausted, ReasonBusy, err)
		a.retryAfter = busy.RetryAfter
		return a.with("setting", busy.Setting).number("limit", busy.Limit)
	}
	if used, ok := errors.AsType[*assemble.SessionBusyError](err); ok {
		a := newAnswer(codes.ResourceExhausted, ReasonBusy, err)
		a.retryAfter = used.RetryAfter
		return a.with("session_id", used.SessionID)
	}
	if _, ok := errors.AsType[*eventlog.FullError](err); ok {
		a := newAnswer(codes.ResourceExhausted, ReasonDiskFull, err)
		a.retryAfter = roomRetry
		return a
	}
	if slow, ok := errors.AsType[*SlowError](err); ok {
		return newAnswer(codes.DeadlineExceeded, ReasonSlow, err).with("setting", slow.Setting)
	}
	return nil
}

// importLimit is for a transcript that exceeds a limit.
func importLimit(limit *harness.LimitError, err error) *answer {
	a := badField(codes.ResourceExhausted, ReasonLimit, "data", limit.Error(), err)
	if limit.Memory() {
		a.with("setting", "import_memory")
	}
	if limit.Busy {
		a.reason, a.retryAfter = ReasonBusy, importRetry
	}
	return a.number("limit", limit.Limit).number("actual", limit.Actual)
}

// availability is errors that only time or an operator can fix.
func availability(err error) *answer {
	var failed *eventlog.UnavailableError
	var corrupt *eventlog.CorruptError
	switch {
	case errors.Is(err, disklog.ErrSnapshotOpen):
		a := newAnswer(codes.Unavailable, ReasonStoreBusy, nil)
		a.message, a.retryAfter = "another backup is running; try again once it has ended", storeRetry
		return a
	case errors.As(err, &failed) && failed.Passing:
		a := newAnswer(codes.Unavailable, ReasonStoreBusy, nil)
		a.message = "the store cannot be reached just now; try again"
		a.hidden, a.retryAfter = true, storeRetry
		return a
	case errors.As(err, &failed):
		a := newAnswer(codes.Unavailable, ReasonStoreFailed, nil)
		a.message = "the store has failed and takes no more work until the daemon is restarted; the daemon's log has the cause"
		a.hidden = true
		return a
	case errors.As(err, &corrupt):
		a := newAnswer(codes.DataLoss, ReasonDataCorrupt, nil)
		a.message = "what the store has kept is damaged; the daemon's log says where"
		a.hidden = true
		switch {
		case corrupt.Deleted:
			a.message = "the session is deleted, but its bytes stay on the disk next to damage until that is repaired; the daemon's log says where"
		case corrupt.Session != "":
			a.message = fmt.Sprintf("what the store has kept of session %q is damaged; the daemon's log says where", corrupt.Session)
			a.with("session_id", corrupt.Session).resource("session", corrupt.Session)
		}
		return a
	case errors.Is(err, ErrDraining), errors.Is(err, eventlog.ErrClosed):
		a := newAnswer(codes.Unavailable, ReasonDraining, ErrDraining)
		a.retryAfter = drainRetry
		return a
	default:
		return nil
	}
}

// summaries are failures of summarizers. They come before calls: a summarizer's timeout is not the call's,
// but looks the same.
func summaries(err error) *answer {
	if _, ok := errors.AsType[*summarize.UnknownError](err); ok {
		return newAnswer(codes.FailedPrecondition, ReasonNotConfigured, err).with("setting", "summarizers")
	}
	if errors.Is(err, summarize.ErrClosed) {
		a := newAnswer(codes.Unavailable, ReasonDraining, ErrDraining)
		a.retryAfter = drainRetry
		return a
	}
	failed, ok := errors.AsType[*summarize.BackendError](err)
	if !ok {
		return nil
	}
	a := newAnswer(codes.Unavailable, ReasonSummarizer, err)
	if a.retryAfter = failed.RetryAfter; failed.Permanent {
		a.code, a.reason = codes.FailedPrecondition, ReasonNoSummary
	}
	return a.with("summarizer", failed.Summarizer).resource("summarizer", failed.Summarizer)
}

// budgetExceeded lists the largest parts first.
func budgetExceeded(err *assemble.BudgetError) *contextdv1.BudgetExceeded {
	parts := slices.SortedStableFunc(slices.Values(err.Parts), func(a, b assemble.IrreduciblePart) int {
		return cmp.Compare(b.Tokens, a.Tokens)
	})
	out := &contextdv1.BudgetExceeded{TargetTokens: err.Target, NeededTokens: err.Needed}
	for _, p := range parts[:min(len(parts), maxParts)] {
		out.Parts = append(out.Parts, &contextdv1.IrreduciblePart{What: short(p.What), Seq: uint64(p.Seq), Tokens: p.Tokens})
	}
	return out
}

func calls(err error) *answer {
	if _, isStatus := status.FromError(err); isStatus {
		return nil
	}
	switch {
	case errors.Is(err, context.Canceled):
		return &answer{code: codes.Canceled, reason: ReasonCanceled, message: "the call was canceled"}
	case errors.Is(err, context.DeadlineExceeded):
		return &answer{code: codes.DeadlineExceeded, reason: ReasonDeadline, message: "the call's deadline has passed"}
	default:
		return nil
	}
}

// fromStatus adds a reason to a status that gRPC or generated code made.
func fromStatus(err error) (*status.Status, bool) {
	st, ok := status.FromError(err)
	if !ok {
		return nil, false
	}
	if len(st.Details()) > 0 {
		return st, true
	}
	a := &answer{code: st.Code(), reason: ReasonTransport, message: st.Message()}
	switch st.Code() {
	case codes.Unimplemented:
		a.reason = ReasonNotBuilt
	case codes.Canceled:
		a.reason = ReasonCanceled
	case codes.DeadlineExceeded:
		a.reason = ReasonDeadline
	}
	return a.status(), true
}

func fromRules(err *protovalidate.ValidationError) *answer {
	a := &answer{code: codes.InvalidArgument, reason: ReasonInvalidField}
	var texts []string
	for i, v := range err.Violations[:min(len(err.Violations), maxViolations)] {
		field := fieldOf(v)
		reason := reasonOf(v, field)
		if i > 0 && v.Proto.GetRuleId() == patternRule && field == fieldOf(err.Violations[i-1]) {
			continue // a value that is empty or too long fails the pattern too; report only the former
		}
		a.violation(field, reason)
		texts = append(texts, field+": "+reason)
	}
	a.message = strings.Join(texts, "; ")
	return a
}

const patternRule = "string.pattern"

// patterns explain the patterns of the API's fields in words.
var patterns = map[string]string{
	"^[A-Za-z0-9_][A-Za-z0-9._:@-]*(/[A-Za-z0-9_][A-Za-z0-9._:@-]*)*$": "must be of letters, digits and . _ : @ - in parts that a / separates, each of which begins with a letter, a digit or _",
	"^([A-Za-z0-9_][A-Za-z0-9_.:-]*)?$":                                "must be of letters, digits and . _ : - and begin with a letter, a digit or _",
	"^[^\\x00-\\x1f\\x7f]*$":                                           "must not contain control characters",
	"^(sha256:[0-9a-f]{64})?$":                                         "must be sha256: and 64 hex digits, in small letters",
}

// reasonOf explains in words what is wrong with a field.
func reasonOf(v *protovalidate.Violation, field string) string {
	switch v.Proto.GetRuleId() {
	case patternRule:
		if words := patterns[v.RuleValue.String()]; words != "" {
			return words
		}
	case "required", "enum.not_in": // the only refused value of an enum is 0, which means unset
		return "must be set"
	case "enum.defined_only":
		return "must be one of " + strings.Join(EnumNames(v.FieldDescriptor.Enum()), ", ")
	case "string.min_len", "bytes.min_len", "repeated.min_items":
		if v.RuleValue.Uint() == 1 {
			return "must not be empty"
		}
	case "string.in":
		var all []string
		for i := range v.RuleValue.List().Len() {
			all = append(all, v.RuleValue.List().Get(i).String())
		}
		return "must be one of " + strings.Join(all, ", ")
	}
	// The message of a rule for a whole message may begin with the name of a field.
	name := field[strings.LastIndexByte(field, '.')+1:]
	return strings.TrimPrefix(cmp.Or(v.Proto.GetMessage(), v.Proto.GetRuleId()), name+" ")
}

// EnumNames lists the values that an enum may be set to, by the API's names.
func EnumNames(of protoreflect.EnumDescriptor) []string {
	var names []string
	for i := range of.Values().Len() {
		if v := of.Values().Get(i); v.Number() != 0 {
			names = append(names, string(v.Name()))
		}
	}
	return names
}

// fieldOf is the path of the invalid field. A rule for a whole message has no field; its id begins with the
// name of the field that it is about.
func fieldOf(v *protovalidate.Violation) string {
	path := protovalidate.FieldPathString(v.Proto.GetField())
	about, _, dotted := strings.Cut(v.Proto.GetRuleId(), ".")
	switch {
	case v.FieldDescriptor != nil || len(v.Proto.GetRule().GetElements()) > 0 || !dotted:
		return path
	case path == "":
		return about
	default:
		return path + "." + about
	}
}
