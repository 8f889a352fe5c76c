package server_test

import (
	"testing"

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
	parts, err := received(stream.Recv)
	if err != nil {
		t.Fatal(err)
	}
	chains := map[uint64]string{}
	for _, resp := range parts {
		events := resp.GetEvents()
		chains[events[len(events)-1].GetSeq()] = resp.GetChainHead()
	}
	return chains
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
