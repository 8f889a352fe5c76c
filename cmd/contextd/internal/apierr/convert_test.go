package apierr_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"buf.build/go/protovalidate"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
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

type conversion struct {
	err    error
	code   codes.Code
	reason string
	hidden bool
	// details are the kinds and contents of the details, without ErrorInfo.
	details []string
}

func conversions(t *testing.T) map[string]conversion {
	rules := protovalidate.Validate(&contextdv1.AppendEventsRequest{SessionId: "s"})
	if rules == nil {
		t.Fatal("a request that breaks a rule was found valid")
	}
	return map[string]conversion{
		"rules of the API": {rules, codes.InvalidArgument, "INVALID_FIELD", false, []string{"field events"}},
		"invalid":          {&eventlog.InvalidError{Field: "a.b", Reason: "is bad"}, codes.InvalidArgument, "INVALID_FIELD", false, []string{"field a.b"}},
		"nobody":           {&auth.UnauthenticatedError{Reason: "no token"}, codes.Unauthenticated, "UNAUTHENTICATED", false, nil},
		"nobody here":      {&auth.DeniedError{Reason: "no"}, codes.PermissionDenied, "PERMISSION_DENIED", false, nil},
		"invalid, wrapped": {fmt.Errorf("x: %w", &eventlog.InvalidError{Field: "a", Reason: "b"}), codes.InvalidArgument, "INVALID_FIELD", false, []string{"field a"}},
		"budget":           {&budget.SpecError{Field: "red_at", Reason: "is bad"}, codes.InvalidArgument, "INVALID_FIELD", false, []string{"field budget.red_at"}},
		"generated":        {status.Error(codes.Unimplemented, "method X not implemented"), codes.Unimplemented, "NOT_BUILT", false, nil},
		"transcript":       {&harness.FormatError{Reason: "no"}, codes.InvalidArgument, "TRANSCRIPT_UNREADABLE", false, []string{"field data"}},
		"no session":       {&eventlog.NotFoundError{Kind: "session", Name: "s"}, codes.NotFound, "SESSION_NOT_FOUND", false, []string{"resource session s"}},
		"no pointer":       {&eventlog.NotFoundError{Kind: "pointer", Name: "p"}, codes.NotFound, "NOT_FOUND", false, []string{"resource pointer p"}},
		"exists":           {&eventlog.ExistsError{Kind: "session", Name: "s"}, codes.AlreadyExists, "SESSION_EXISTS", false, []string{"resource session s"}},
		"unknown policy": {
			&policy.UnknownError{Err: &eventlog.InvalidError{Field: "policy.name", Reason: "is none"}, Name: "carful", Known: []string{"careful", "default"}}, codes.InvalidArgument, "INVALID_FIELD", false,
			[]string{"field policy.name", "unknown=carful", "known=careful,default"},
		},
		"conflict": {
			&eventlog.EventConflictError{EventID: "e", Index: 3, Seq: 7}, codes.AlreadyExists, "EVENT_ID_CONFLICT", false,
			[]string{"field events[3].event_id", "event_id=e", "seq=7"},
		},
		"key": {
			&records.KeyConflictError{Key: "k", Kind: records.KeyedProjection, Name: "p1-0001"}, codes.AlreadyExists, "IDEMPOTENCY_KEY_CONFLICT", false,
			[]string{"field idempotency_key", "projection_id=p1-0001", "resource projection p1-0001"},
		},
		"key of a call": {
			&records.KeyConflictError{Key: "k", Kind: records.KeyedCall, Name: "7"}, codes.AlreadyExists, "IDEMPOTENCY_KEY_CONFLICT", false,
			[]string{"field idempotency_key", "resource call 7"},
		},
		"head": {
			&eventlog.HeadMismatchError{Expected: 1, Actual: 2}, codes.Aborted, "HEAD_MISMATCH", false,
			[]string{"field expected_head", "expected_head=1", "head_seq=2"},
		},
		"another writer": {
			&eventlog.ConflictError{Session: "s", What: "the batch"}, codes.Aborted, "WRITE_CONFLICT", false,
			[]string{"resource session s", "retry after 1s"},
		},
		"log lost": {
			&eventlog.LostError{Session: "s", Known: 8, Head: 2}, codes.FailedPrecondition, "LOG_LOST", false,
			[]string{"resource session s", "field known", "known_seq=8", "head_seq=2"},
		},
		"log rewritten": {
			&eventlog.LostError{Session: "s", Known: 8, Head: 9, Rewritten: true}, codes.FailedPrecondition, "LOG_LOST", false,
			[]string{"resource session s", "field known", "known_seq=8", "head_seq=9"},
		},
		"events lost": {
			&lifecycle.LostError{SessionID: "s", Field: "after[1].incarnation"}, codes.FailedPrecondition, "LOG_LOST", false,
			[]string{"resource session s", "field after[1].incarnation"},
		},
		"over budget": {
			&assemble.BudgetError{Target: 10, Needed: 20, Parts: []assemble.IrreduciblePart{{What: "small", Tokens: 1}, {What: "large", Seq: 4, Tokens: 19}}},
			codes.FailedPrecondition, "BUDGET_EXCEEDED", false,
			[]string{"part large 4 19", "part small 0 1", "target_tokens=10", "needed_tokens=20"},
		},
		"injection": {
			&assemble.InjectionError{Name: "now", Tokens: 9, Reserve: 5}, codes.FailedPrecondition, "INJECTION_OVER_RESERVE", false,
			[]string{"injection=now", "tokens=9", "reserve_tokens=5"},
		},
		"nothing shown": {
			&assemble.NothingShownError{SessionID: "s", Tokens: 9}, codes.FailedPrecondition, "NOTHING_SHOWN", false,
			[]string{"tokens=9"},
		},
		"limit": {
			&apierr.LimitError{Field: "events", Setting: "max_batch_events", Limit: 1, Actual: 2, Unit: "events"}, codes.ResourceExhausted, "LIMIT_EXCEEDED", false,
			[]string{"field events", "setting=max_batch_events", "limit=1", "actual=2"},
		},
		"summarizer down": {
			&summarize.BackendError{Summarizer: "m", Cause: fmt.Errorf("%w", context.DeadlineExceeded), RetryAfter: 3 * time.Second}, codes.Unavailable, "SUMMARIZER_UNAVAILABLE", false,
			[]string{"summarizer=m", "resource summarizer m", "retry after 3s"},
		},
		"summary of no use": {
			fmt.Errorf("x: %w", &summarize.BackendError{Summarizer: "m", Permanent: true, Cause: &summarize.RejectedError{Reason: "it is empty"}}), codes.FailedPrecondition, "SUMMARY_FAILED", false,
			[]string{"summarizer=m", "resource summarizer m"},
		},
		"no such summarizer": {&summarize.UnknownError{Summarizer: "m"}, codes.FailedPrecondition, "NOT_CONFIGURED", false, []string{"setting=summarizers"}},
		"summaries stopped":  {summarize.ErrClosed, codes.Unavailable, "DRAINING", false, []string{"retry after 1s"}},
		"busy": {
			&fair.BusyError{Setting: "request_memory", Limit: 5, RetryAfter: time.Second}, codes.ResourceExhausted, "BUSY", false,
			[]string{"setting=request_memory", "limit=5", "retry after 1s"},
		},
		"a session that others use": {
			&assemble.SessionBusyError{SessionID: "s", Waited: time.Minute, RetryAfter: time.Second}, codes.ResourceExhausted, "BUSY", false,
			[]string{"session_id=s", "retry after 1s"},
		},
		"slow": {
			&apierr.SlowError{Setting: "send_timeout", After: time.Second, What: "nothing"}, codes.DeadlineExceeded, "CLIENT_TOO_SLOW", false,
			[]string{"setting=send_timeout"},
		},
		"store failed": {&eventlog.UnavailableError{Cause: errSecret}, codes.Unavailable, "STORE_FAILED", true, nil},
		"corrupt": {
			fmt.Errorf("read: %w", &eventlog.CorruptError{What: "event 3 of secret", Reason: "its secret checksum differs"}),
			codes.DataLoss, "DATA_CORRUPT", true, nil,
		},
		"deleted beside damage": {
			&eventlog.CorruptError{What: "secret", Reason: "secret", Deleted: true}, codes.DataLoss, "DATA_CORRUPT", true, nil,
		},
		"corrupt by name": {
			&eventlog.CorruptError{Session: "s", What: "event 3 of secret", Reason: "its secret checksum differs"},
			codes.DataLoss, "DATA_CORRUPT", true, []string{"session_id=s", "resource session s"},
		},
		"store busy": {
			&eventlog.UnavailableError{Cause: errSecret, Passing: true}, codes.Unavailable, "STORE_BUSY", true, []string{"retry after 1s"},
		},
		"another backup": {
			&eventlog.UnavailableError{Cause: disklog.ErrSnapshotOpen, Passing: true}, codes.Unavailable, "STORE_BUSY", false, []string{"retry after 1s"},
		},
		"read only":                {&eventlog.ReadOnlyError{}, codes.FailedPrecondition, "READ_ONLY", false, nil},
		"backup ended":             {disklog.ErrSnapshotEnded, codes.Aborted, "BACKUP_ENDED", false, []string{"retry after 1s"}},
		"disk full":                {&eventlog.FullError{}, codes.ResourceExhausted, "DISK_FULL", false, []string{"retry after 5s"}},
		"failed for being corrupt": {&eventlog.UnavailableError{Cause: &eventlog.CorruptError{What: "secret"}}, codes.Unavailable, "STORE_FAILED", true, nil},
		"a newer version": {
			&artifact.VersionError{Kind: "projection", ID: "p1-0001", Version: 2, Readable: 1}, codes.FailedPrecondition, "STORED_VERSION", false,
			[]string{"version=2", "readable=1"},
		},
		"not configured": {
			&apierr.NotConfiguredError{Setting: "summarizers", Reason: "there is none"}, codes.FailedPrecondition, "NOT_CONFIGURED", false,
			[]string{"setting=summarizers"},
		},
		"draining":      {apierr.ErrDraining, codes.Unavailable, "DRAINING", false, []string{"retry after 1s"}},
		"closed":        {eventlog.ErrClosed, codes.Unavailable, "DRAINING", false, []string{"retry after 1s"}},
		"canceled":      {context.Canceled, codes.Canceled, "CANCELED", false, nil},
		"deadline":      {fmt.Errorf("x: %w", context.DeadlineExceeded), codes.DeadlineExceeded, "DEADLINE_EXCEEDED", false, nil},
		"canceled call": {status.Error(codes.Canceled, "x"), codes.Canceled, "CANCELED", false, nil},
		"late call":     {status.Error(codes.DeadlineExceeded, "x"), codes.DeadlineExceeded, "DEADLINE_EXCEEDED", false, nil},
		"too large":     {status.Error(codes.ResourceExhausted, "grpc: received message larger than max"), codes.ResourceExhausted, "TRANSPORT", false, nil},
		"anything else": {errSecret, codes.Internal, "INTERNAL", true, nil},
	}
}

var errSecret = errors.New("pebble: /var/lib/secret is broken")

func TestConvert(t *testing.T) {
	for name, test := range conversions(t) {
		t.Run(name, func(t *testing.T) {
			st, hidden := apierr.Convert(test.err)
			if st.Code() != test.code || hidden != test.hidden {
				t.Errorf("got %v, hidden %t; want %v, %t", st.Code(), hidden, test.code, test.hidden)
			}
			if strings.Contains(st.String(), "secret") || strings.Contains(fmt.Sprint(st.Details()), "secret") {
				t.Errorf("the client gets the cause: %v", st)
			}
			reason, facts := facts(st)
			if reason != test.reason {
				t.Errorf("reason is %s; want %s", reason, test.reason)
			}
			for _, want := range test.details {
				if !strings.Contains(facts, want+"\n") {
					t.Errorf("details lack %q:\n%s", want, facts)
				}
			}
			if want, got := len(test.details), strings.Count(facts, "\n"); want != got {
				t.Errorf("%d details; want %d:\n%s", got, want, facts)
			}
			if again, _ := apierr.Convert(st.Err()); !proto.Equal(again.Proto(), st.Proto()) {
				t.Errorf("converted twice: %v", again)
			}
		})
	}
	if st, hidden := apierr.Convert(nil); st.Code() != codes.OK || hidden {
		t.Errorf("no error became %v", st)
	}
}

// TestDeletedBesideDamage: who waits until a session is erased learns that it is deleted.
func TestDeletedBesideDamage(t *testing.T) {
	st, _ := apierr.Convert(&eventlog.CorruptError{Deleted: true})
	if !strings.HasPrefix(st.Message(), "the session is deleted, but its bytes stay on the disk") {
		t.Error(st.Message())
	}
}

// facts writes details as text, one per line.
func facts(st *status.Status) (reason, all string) {
	var b strings.Builder
	for _, detail := range st.Details() {
		switch d := detail.(type) {
		case *errdetails.ErrorInfo:
			reason = d.GetReason()
			for k, v := range d.GetMetadata() {
				fmt.Fprintf(&b, "%s=%s\n", k, v)
			}
		case *errdetails.BadRequest:
			for _, v := range d.GetFieldViolations() {
				fmt.Fprintf(&b, "field %s\n", v.GetField())
			}
		case *errdetails.ResourceInfo:
			fmt.Fprintf(&b, "resource %s %s\n", d.GetResourceType(), d.GetResourceName())
		case *errdetails.RetryInfo:
			fmt.Fprintf(&b, "retry after %s\n", d.GetRetryDelay().AsDuration())
		case *contextdv1.BudgetExceeded:
			for _, p := range d.GetParts() {
				fmt.Fprintf(&b, "part %s %d %d\n", p.GetWhat(), p.GetSeq(), p.GetTokens())
			}
		}
	}
	return reason, b.String()
}

// TestStatusesAreSmall checks that a status stays within what clients accept in headers, whatever the client
// sent.
func TestStatusesAreSmall(t *testing.T) {
	long := strings.Repeat("é", 100_000)
	var parts []assemble.IrreduciblePart
	for range 1000 {
		parts = append(parts, assemble.IrreduciblePart{What: "first user message", Seq: 1 << 40, Tokens: 1 << 40})
	}
	many := &contextdv1.AppendEventsRequest{SessionId: "s"}
	for range 1000 {
		many.Events = append(many.Events, &contextdv1.Event{Labels: map[string]string{long: "x"}})
	}
	nine := map[string]string{}
	for i := range 9 {
		nine[strings.Repeat("\u202e", 150+i)] = "x"
	}
	for _, err := range []error{
		&eventlog.InvalidError{Field: long, Reason: long},
		&eventlog.NotFoundError{Kind: "session", Name: long},
		&eventlog.EventConflictError{EventID: long},
		&assemble.InjectionError{Name: long},
		&assemble.BudgetError{Parts: parts},
		protovalidate.Validate(many),
		protovalidate.Validate(&contextdv1.CreateSessionRequest{SessionId: "s", Labels: nine}),
	} {
		st, _ := apierr.Convert(err)
		b, err := proto.Marshal(st.Proto())
		if err != nil {
			t.Fatal(err)
		}
		// Half of 8 KiB: the details are sent as base64, with other headers.
		if len(b) > 4<<10 {
			t.Errorf("%T takes %d bytes", err, len(b))
		}
		if !utf8.ValidString(st.Message()) || len(st.Details()) == 0 {
			t.Errorf("%T is cut in the middle of a rune, or has lost its details", err)
		}
	}
}

// TestDocumented compares docs/api-errors.md with the errors that are sent.
func TestDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/api-errors.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\| `?([A-Za-z_]+)`? \\|").FindAllStringSubmatch(string(page), -1) {
		documented[row[1]] = row[2]
	}
	sent := map[string]bool{}
	for name, test := range conversions(t) {
		sent[test.reason] = true
		code := map[codes.Code]string{
			codes.InvalidArgument: "INVALID_ARGUMENT", codes.Unimplemented: "UNIMPLEMENTED", codes.NotFound: "NOT_FOUND",
			codes.AlreadyExists: "ALREADY_EXISTS", codes.Aborted: "ABORTED", codes.FailedPrecondition: "FAILED_PRECONDITION",
			codes.ResourceExhausted: "RESOURCE_EXHAUSTED", codes.Unavailable: "UNAVAILABLE", codes.Canceled: "CANCELLED",
			codes.DeadlineExceeded: "DEADLINE_EXCEEDED", codes.Internal: "INTERNAL", codes.DataLoss: "DATA_LOSS",
			codes.Unauthenticated: "UNAUTHENTICATED", codes.PermissionDenied: "PERMISSION_DENIED",
		}[test.code]
		if got := documented[test.reason]; got != code && got != "any" {
			t.Errorf("%s: %s is documented as %q; it is %s", name, test.reason, got, code)
		}
	}
	for reason := range documented {
		if !sent[reason] {
			t.Errorf("%s is documented and no test sends it", reason)
		}
	}
}

// TestPatternsAreWords: error messages show no regular expression, and no field twice.
func TestPatternsAreWords(t *testing.T) {
	patterns := 0
	for _, file := range []protoreflect.FileDescriptor{
		contextdv1.File_contextd_v1_context_service_proto, contextdv1.File_contextd_v1_compaction_service_proto, contextdv1.File_contextd_v1_transcript_service_proto,
	} {
		imports := file.Imports()
		for i := range imports.Len() {
			messages := imports.Get(i).Messages()
			for j := range messages.Len() {
				m := messages.Get(j)
				for k := range m.Fields().Len() {
					fd := m.Fields().Get(k)
					rules, _ := proto.GetExtension(fd.Options(), validate.E_Field).(*validate.FieldRules)
					if !rules.GetString().HasPattern() {
						continue
					}
					patterns++
					broken := dynamicpb.NewMessage(m)
					broken.Set(fd, protoreflect.ValueOfString("\n"+strings.Repeat("x", 300)))
					st, _ := apierr.Convert(protovalidate.Validate(broken, protovalidate.WithFilter(protovalidate.FilterFunc(func(_ protoreflect.Message, d protoreflect.Descriptor) bool { return d == fd }))))
					if text := st.Message(); !strings.Contains(text, "must ") || strings.Contains(text, "regex") || strings.Count(text, string(fd.Name())) != 1 {
						t.Errorf("%s: %s", fd.FullName(), text)
					}
				}
			}
		}
	}
	if patterns < 20 {
		t.Errorf("%d patterns were found", patterns)
	}
}

// TestEnumsAreWords: error messages show the names of an enum's values, not their numbers.
func TestEnumsAreWords(t *testing.T) {
	for role, want := range map[contextdv1.Role]string{
		contextdv1.Role_ROLE_UNSPECIFIED: "role: must be set",
		99:                               "role: must be one of ROLE_SYSTEM, ROLE_USER, ROLE_ASSISTANT, ROLE_TOOL",
	} {
		broken := &contextdv1.Message{Role: role, Blocks: []*contextdv1.Block{{Kind: &contextdv1.Block_Text{Text: &contextdv1.Text{Text: "x"}}}}}
		if st, _ := apierr.Convert(protovalidate.Validate(broken)); st.Message() != want {
			t.Errorf("%d: %s, want %s", role, st.Message(), want)
		}
	}
}
