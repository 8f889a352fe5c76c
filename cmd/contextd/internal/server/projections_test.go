package server_test

import (
	"bytes"
	"context"
	"iter"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/records"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// renderAgain receives what RenderProjection sends.
func renderAgain(t *testing.T, a *api, id, projection string) (*contextdv1.ReplayProjectionResponse, []*contextdv1.RenderedMessage, error) {
	t.Helper()
	stream, err := a.RenderProjection(t.Context(), &contextdv1.RenderProjectionRequest{SessionId: id, ProjectionId: projection})
	if err != nil {
		t.Fatal(err)
	}
	parts, err := received(stream.Recv)
	if err != nil {
		return nil, nil, err
	}
	var replay *contextdv1.ReplayProjectionResponse
	var messages []*contextdv1.RenderedMessage
	for _, resp := range parts {
		if resp.GetReplay() != nil {
			replay = resp.GetReplay()
		}
		messages = append(messages, resp.GetChunk().GetMessages()...)
	}
	return replay, messages, nil
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

// countingStore counts the artifacts that are listed.
type countingStore struct {
	eventlog.Store
	listed atomic.Int64
}

func (c *countingStore) Artifacts(ctx context.Context, id string, q eventlog.ArtifactQuery) iter.Seq2[eventlog.Artifact, error] {
	return func(yield func(eventlog.Artifact, error) bool) {
		for a, err := range c.Store.Artifacts(ctx, id, q) {
			c.listed.Add(1)
			if !yield(a, err) {
				return
			}
		}
	}
}

// TestProjectionsOfOneEvent checks that a page reads none of the projections that earlier pages have shown, though all
// are of one event.
func TestProjectionsOfOneEvent(t *testing.T) {
	store := &countingStore{Store: memlog.New()}
	a := serve(t, store)
	a.append(t, "s", longSession(2, 10)...)
	const all, size = 200, 90
	for range all {
		if _, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s"}); err != nil {
			t.Fatal(err)
		}
	}
	listed := map[string]bool{}
	for token, pages := "", 0; ; pages++ {
		store.listed.Store(0)
		page, err := a.ListProjections(t.Context(), &contextdv1.ListProjectionsRequest{SessionId: "s", PageSize: size, PageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		if n := store.listed.Load(); n > size+2 { // and whether there are more, and a shadow
			t.Errorf("page %d goes through %d artifacts", pages, n)
		}
		for _, p := range page.GetProjections() {
			listed[p.GetProjectionId()] = true
		}
		if token = page.GetNextPageToken(); token == "" {
			break
		}
	}
	if len(listed) != all {
		t.Errorf("%d are listed", len(listed))
	}
}

// TestCallsOfOneEvent checks the same of model calls, and that one call is found without those of its event, which may be
// none.
func TestCallsOfOneEvent(t *testing.T) {
	store := &countingStore{Store: memlog.New()}
	a := serve(t, store)
	a.append(t, "s", longSession(2, 10)...)
	if _, err := a.CreateSession(t.Context(), &contextdv1.CreateSessionRequest{SessionId: "empty"}); err != nil {
		t.Fatal(err)
	}
	for _, session := range []string{"s", "empty"} {
		t.Run(session, func(t *testing.T) { callsOfOneEvent(t, a, store, session) })
	}
}

func callsOfOneEvent(t *testing.T, a *api, store *countingStore, session string) {
	t.Helper()
	const all, size = 200, 90
	for range all {
		if _, err := a.RecordModelCall(t.Context(), &contextdv1.RecordModelCallRequest{SessionId: session, Model: "m", InputTokens: 9}); err != nil {
			t.Fatal(err)
		}
	}
	const search = 8 // for the event of a call
	listed := 0
	for token, pages := "", 0; ; pages++ {
		store.listed.Store(0)
		page, err := a.ListModelCalls(t.Context(), &contextdv1.ListModelCallsRequest{SessionId: session, PageSize: size, PageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		if n := store.listed.Load(); n > size+1+search {
			t.Errorf("page %d goes through %d artifacts", pages, n)
		}
		listed += len(page.GetCalls())
		if token = page.GetNextPageToken(); token == "" {
			break
		}
	}
	if listed != all {
		t.Errorf("%d are listed", listed)
	}
	store.listed.Store(0)
	if c, err := records.GetCall(t.Context(), store, session, 1); err != nil || c.Number != 1 || store.listed.Load() > search {
		t.Errorf("call %d, %v, by %d artifacts", c.Number, err, store.listed.Load())
	}
}
