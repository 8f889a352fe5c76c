package server_test

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	"github.com/contextd/contextd/cmd/contextd/internal/server"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/records"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// countingMeter counts the calls that are measured.
type countingMeter struct {
	shadowLog
	calls int
}

func (m *countingMeter) Recorded(context.Context, records.Call) { m.calls++ }

// TestACallWithAKeyCountsOnce: a report that is repeated with its key is answered as the first
// was and counted once, also after other calls, in a fork and after a restart; any other report
// with the key is refused.
func TestACallWithAKeyCountsOnce(t *testing.T) {
	eachStore(t, func(t *testing.T, open func(t *testing.T) eventlog.Store) {
		store := open(t)
		meter := &countingMeter{}
		measured := func(o *server.Options) { o.Meter = meter }
		a := serve(t, unclosed{store}, measured)
		a.append(t, "s", longSession(10, 40)...)
		named := func(id string) *contextdv1.Event {
			e := user(id)
			e.EventId = id
			return e
		}
		got, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s", Budget: &contextdv1.Budget{Model: "m", MaxTokens: 100_000}})
		if err != nil {
			t.Fatal(err)
		}
		report := &contextdv1.RecordModelCallRequest{
			SessionId: "s", ProjectionId: got.header.GetProjectionId(), Model: "m", StopReason: "stop", IdempotencyKey: "k",
			InputTokens: 3 * got.header.GetBudget().GetProjectedTokens(), CacheReadTokens: 2, CacheWriteTokens: 3, OutputTokens: 4,
		}
		first := a.record(t, report)
		unkeyed := proto.CloneOf(report)
		unkeyed.IdempotencyKey = ""
		if later := a.record(t, unkeyed); later <= first {
			t.Fatalf("without a key the second call taught %v after %v", later, first)
		}
		a.append(t, "s", named("more"))
		if c := a.record(t, &contextdv1.RecordModelCallRequest{SessionId: "s", IdempotencyKey: "of no projection"}); c != 1 {
			t.Errorf("a call from no projection taught %v", c)
		}
		if _, err := a.ForkSession(t.Context(), &contextdv1.ForkSessionRequest{SessionId: "s", NewSessionId: "fork"}); err != nil {
			t.Fatal(err)
		}
		a = serve(t, store, measured)
		a.append(t, "s", named("and more"))
		ofBudget := proto.CloneOf(report)
		ofBudget.Model = ""
		inFork := proto.CloneOf(report)
		inFork.SessionId = "fork"
		for name, repeated := range map[string]*contextdv1.RecordModelCallRequest{"the same": report, "the budget's model": ofBudget, "in a fork": inFork} {
			if again := a.record(t, repeated); again != first {
				t.Errorf("%s: answered with %v, not %v", name, again, first)
			}
		}
		a.record(t, &contextdv1.RecordModelCallRequest{SessionId: "s", IdempotencyKey: "of no projection"})
		for _, session := range []string{"s", "fork"} {
			list, err := a.ListModelCalls(t.Context(), &contextdv1.ListModelCallsRequest{SessionId: session})
			if err != nil || len(list.GetCalls()) != 3 {
				t.Errorf("%s has %v, %v", session, list.GetCalls(), err)
			}
		}
		if meter.calls != 3 {
			t.Errorf("%d calls were measured", meter.calls)
		}
		fields := report.ProtoReflect().Descriptor().Fields()
		for i := range fields.Len() {
			f := fields.Get(i)
			if f.Name() == "session_id" || f.Name() == "idempotency_key" {
				continue
			}
			other := proto.CloneOf(report)
			switch f.Kind() {
			case protoreflect.StringKind:
				other.ProtoReflect().Set(f, protoreflect.ValueOfString("other"))
			case protoreflect.Uint64Kind:
				other.ProtoReflect().Set(f, protoreflect.ValueOfUint64(report.ProtoReflect().Get(f).Uint()+1))
			default:
				other.ProtoReflect().Set(f, protoreflect.ValueOfBool(true))
			}
			checkRefusal(t, recording(other)(t.Context(), a), badInput{code: codes.AlreadyExists, reason: apierr.ReasonKeyConflict, field: "idempotency_key"})
			if t.Failed() {
				t.Fatalf("with another %s", f.Name())
			}
		}
	})
}
