package server_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// chainsOf reads a range and returns, by the seq of each message's last event, the
// chain that came with it.
func chainsOf(t *testing.T, a *api, id string, from, to uint64) map[uint64]string {
	t.Helper()
	stream, err := a.ReadEvents(t.Context(), &contextdv1.ReadEventsRequest{SessionId: id, FromSeq: from, ToSeq: to})
	if err != nil {
		t.Fatal(err)
	}
	chains := map[uint64]string{}
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return chains
		}
		if err != nil {
			t.Fatal(err)
		}
		events := resp.GetEvents()
		chains[events[len(events)-1].GetSeq()] = resp.GetChainHead()
	}
}

func sessionOf(t *testing.T, a *api, id string) *contextdv1.Session {
	t.Helper()
	resp, err := a.GetSession(t.Context(), &contextdv1.GetSessionRequest{SessionId: id})
	if err != nil {
		t.Fatal(err)
	}
	return resp.GetSession()
}

// TestChainHead checks that a witness gets the same value however it asks, and nothing from
// a store that has none.
func TestChainHead(t *testing.T) {
	eachStore(t, func(t *testing.T, open func(t *testing.T) eventlog.Store) {
		store := open(t)
		_, inMemory := store.(*memlog.Store)
		a := serve(t, store)
		if made, err := a.CreateSession(t.Context(), &contextdv1.CreateSessionRequest{SessionId: "s"}); err != nil || made.GetSession().GetChainHead() != "" {
			t.Errorf("an empty session has the chain %q, %v", made.GetSession().GetChainHead(), err)
		}
		// Several messages of the stream.
		a.append(t, "s", longSession(60, 100)...)
		s := sessionOf(t, a, "s")
		if got := s.GetChainHead(); inMemory != (got == "") || !inMemory && len(got) != len("sha256:")+64 {
			t.Fatalf("the session has the chain %q", got)
		}
		whole := chainsOf(t, a, "s", 0, 0)
		if len(whole) < 3 || whole[s.GetHeadSeq()] != s.GetChainHead() {
			t.Errorf("the log has the chains %v, the session %s", whole, s.GetChainHead())
		}
		for seq, want := range whole {
			if got := chainsOf(t, a, "s", seq, seq)[seq]; got != want {
				t.Errorf("event %d alone has the chain %s, in the whole log %s", seq, got, want)
			}
		}
		fork, err := a.ForkSession(t.Context(), &contextdv1.ForkSessionRequest{SessionId: "s", AtSeq: 2, NewSessionId: "t"})
		if want := chainsOf(t, a, "s", 2, 2)[2]; err != nil || fork.GetSession().GetChainHead() != want {
			t.Errorf("the fork has the chain %s, %v; want %s", fork.GetSession().GetChainHead(), err, want)
		}
	})
}

// render receives what RenderProjection sends.
func renderAgain(t *testing.T, a *api, id, projection string) (*contextdv1.ReplayProjectionResponse, []*contextdv1.RenderedMessage, error) {
	t.Helper()
	stream, err := a.RenderProjection(t.Context(), &contextdv1.RenderProjectionRequest{SessionId: id, ProjectionId: projection})
	if err != nil {
		t.Fatal(err)
	}
	var replay *contextdv1.ReplayProjectionResponse
	var messages []*contextdv1.RenderedMessage
	for {
		resp, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return replay, messages, nil
		case err != nil:
			return nil, nil, err
		case resp.GetReplay() != nil:
			replay = resp.GetReplay()
		default:
			messages = append(messages, resp.GetChunk().GetMessages()...)
		}
	}
}

// TestRenderProjection checks that what was sent can be had again, byte for byte, by
// its name, and the newest without one.
func TestRenderProjection(t *testing.T) {
	eachStore(t, func(t *testing.T, open func(t *testing.T) eventlog.Store) {
		a := serve(t, open(t))
		events := longSession(40, 100)
		a.append(t, "s", events[:40]...)
		if _, _, err := renderAgain(t, a, "s", ""); status.Code(err) != codes.NotFound {
			t.Errorf("the newest of none: %v", err)
		}
		if _, _, err := renderAgain(t, a, "none", ""); status.Code(err) != codes.NotFound {
			t.Errorf("of no session: %v", err)
		}
		assemble := func() assembled {
			t.Helper()
			got, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s", Budget: tight()})
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		first := assemble()
		a.append(t, "s", events[40:]...)
		second := assemble()
		for name, want := range map[string]assembled{
			first.header.GetProjectionId(): first, second.header.GetProjectionId(): second, "": second,
		} {
			replay, got, err := renderAgain(t, a, "s", name)
			if err != nil || !replay.GetSame() || replay.GetRecorded().GetProjectionId() != want.header.GetProjectionId() {
				t.Errorf("%q is %s, %v, %v", name, replay.GetRecorded().GetProjectionId(), replay.GetDifference(), err)
			}
			if len(got) != len(want.messages) {
				t.Fatalf("%q has %d messages; want %d", name, len(got), len(want.messages))
			}
			for i := range got {
				if !bytes.Equal(got[i].GetJson(), want.messages[i].GetJson()) || !proto.Equal(got[i], want.messages[i]) {
					t.Errorf("%q: message %d is %v; want %v", name, i, got[i], want.messages[i])
				}
			}
		}
	})
}
