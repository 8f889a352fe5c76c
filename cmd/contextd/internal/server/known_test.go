package server_test

import (
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// known appends to, and assembles from, the log that a client knows.
func (a *api) known(t *testing.T, mark *contextdv1.LogMark, expected *uint64) (appended, assembled error) {
	t.Helper()
	_, appended = a.AppendEvents(t.Context(), &contextdv1.AppendEventsRequest{
		SessionId: "s", Events: []*contextdv1.Event{user("And now?")}, Known: mark, ExpectedHead: expected,
	})
	_, assembled = a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s", Known: mark})
	return appended, assembled
}

func wantLost(t *testing.T, err error, head string) {
	t.Helper()
	var info *errdetails.ErrorInfo
	for _, d := range status.Convert(err).Details() {
		if i, ok := d.(*errdetails.ErrorInfo); ok {
			info = i
		}
	}
	if status.Code(err) != codes.FailedPrecondition || info.GetReason() != "LOG_LOST" || info.GetMetadata()["head_seq"] != head {
		t.Errorf("got %v with %v, want LOG_LOST with head_seq %s", err, info, head)
	}
}

// TestLostLogIsNoticed: whoever sends what it knows of a log is refused where the log is
// gone, or another, and nothing is stored.
func TestLostLogIsNoticed(t *testing.T) {
	eachStore(t, func(t *testing.T, open func(t *testing.T) eventlog.Store) {
		a := serve(t, open(t))
		mark := a.append(t, "s", conversation()...).GetMark()
		if mark.GetHeadSeq() != 4 || mark.GetIncarnation() == "" {
			t.Fatalf("the mark is %v", mark)
		}
		if got, err := a.GetSession(t.Context(), &contextdv1.GetSessionRequest{SessionId: "s"}); err != nil || got.GetSession().GetIncarnation() != mark.GetIncarnation() {
			t.Errorf("the session is %v, %v", got, err)
		}
		a.append(t, "s", user("Another writer."))
		if appended, assembled := a.known(t, mark, nil); appended != nil || assembled != nil {
			t.Errorf("behind another writer: %v, %v", appended, assembled)
		}
		if appended, assembled := a.known(t, mark, proto.Uint64(4)); status.Code(appended) != codes.Aborted || assembled != nil {
			t.Errorf("with expected_head behind another writer: %v, %v", appended, assembled)
		}

		appended, assembled := a.known(t, &contextdv1.LogMark{Incarnation: mark.GetIncarnation(), HeadSeq: 9}, nil)
		wantLost(t, appended, "6") // as after a backup was restored
		wantLost(t, assembled, "6")

		if _, err := a.DeleteSession(t.Context(), &contextdv1.DeleteSessionRequest{SessionId: "s"}); err != nil {
			t.Fatal(err)
		}
		appended, assembled = a.known(t, mark, nil)
		wantLost(t, appended, "0")
		wantLost(t, assembled, "0")
		if _, err := a.GetSession(t.Context(), &contextdv1.GetSessionRequest{SessionId: "s"}); status.Code(err) != codes.NotFound {
			t.Errorf("the refused append made a session: %v", err)
		}

		a.append(t, "s", conversation()...) // of the same length
		appended, assembled = a.known(t, mark, nil)
		wantLost(t, appended, "4")
		wantLost(t, assembled, "4")
		if events := a.read(t, "s"); len(events) != 4 {
			t.Errorf("the log has %d events", len(events))
		}
	})
}

// TestIncarnationOfAnotherStore: a store that is lost begins its numbers again, and
// another daemon makes sessions at other times.
func TestIncarnationOfAnotherStore(t *testing.T) {
	one, other := serve(t, memlog.New()), serve(t, memlog.New())
	other.clock.now()
	before := one.append(t, "s", conversation()...)
	other.append(t, "s", conversation()...)
	appended, _ := other.known(t, before.GetMark(), nil)
	wantLost(t, appended, "4")
}

// TestDeletionOfWhatIsKnown: a deletion that says what it is of deletes nothing else.
func TestDeletionOfWhatIsKnown(t *testing.T) {
	eachStore(t, func(t *testing.T, open func(t *testing.T) eventlog.Store) {
		a := serve(t, open(t))
		mark := a.append(t, "s", conversation()...).GetMark()
		remove := func(mark *contextdv1.LogMark, expected *uint64) error {
			_, err := a.DeleteSession(t.Context(), &contextdv1.DeleteSessionRequest{SessionId: "s", Known: mark, ExpectedHead: expected})
			return err
		}
		a.append(t, "s", user("Another writer."))
		for _, head := range []uint64{0, 4, 6} {
			if err := remove(mark, proto.Uint64(head)); status.Code(err) != codes.Aborted {
				t.Errorf("with the head %d: %v", head, err)
			}
		}
		wantLost(t, remove(&contextdv1.LogMark{Incarnation: "other", HeadSeq: 1}, proto.Uint64(5)), "5")
		wantLost(t, remove(&contextdv1.LogMark{Incarnation: mark.GetIncarnation(), HeadSeq: 6}, nil), "5")
		if got, err := a.GetSession(t.Context(), &contextdv1.GetSessionRequest{SessionId: "s"}); err != nil || got.GetSession().GetHeadSeq() != 5 {
			t.Fatalf("the session is %v, %v", got, err)
		}
		if err := remove(mark, proto.Uint64(5)); err != nil {
			t.Error(err)
		}
	})
}

// TestMarksOfAFork: a fork has the chain of what it shares, and goes on from it.
func TestMarksOfAFork(t *testing.T) {
	eachStore(t, func(t *testing.T, open func(t *testing.T) eventlog.Store) {
		a := serve(t, open(t))
		a.append(t, "parent", conversation()...)
		if _, err := a.ForkSession(t.Context(), &contextdv1.ForkSessionRequest{SessionId: "parent", AtSeq: 2, NewSessionId: "s"}); err != nil {
			t.Fatal(err)
		}
		fork := sessionOf(t, a, "s")
		made := &contextdv1.LogMark{Incarnation: fork.GetIncarnation(), HeadSeq: fork.GetHeadSeq(), ChainHead: fork.GetChainHead()}
		own := a.append(t, "s", user("Own.")).GetMark()
		for _, mark := range []*contextdv1.LogMark{made, own} {
			if appended, assembled := a.known(t, mark, nil); appended != nil || assembled != nil {
				t.Errorf("%v: %v, %v", mark, appended, assembled)
			}
		}
		if parent := sessionOf(t, a, "parent"); parent.GetChainHead() != "" {
			other := &contextdv1.LogMark{Incarnation: fork.GetIncarnation(), HeadSeq: 3, ChainHead: chainsOf(t, a, "parent", 3, 3)[3]}
			appended, assembled := a.known(t, other, nil)
			wantLost(t, appended, "5")
			wantLost(t, assembled, "5")
		}
	})
}
