package daemon_test

import (
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	"github.com/contextd/contextd/internal/log/disklog"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// TestClockGoesBackwards has every look at the clock show an hour less than the one before, and
// 75 years less after a restart. Events keep their order, the same log gives the same
// context, and what was recorded is rebuilt.
func TestClockGoesBackwards(t *testing.T) {
	const years = 75 * 365 * 24 * time.Hour
	var now atomic.Int64
	now.Store(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC).Unix())
	o := options(t, settings(t, func(c *config.Config) { c.DefaultBudget = &contextdv1.Budget{Tokenizer: "heuristic", MaxTokens: 2000} }))
	o.Clock = func() time.Time { return time.Unix(now.Add(-3600), 0) }
	r := startWith(t, o)
	r.await(t, serving)
	compactions := contextdv1.NewCompactionServiceClient(r.conn)
	for turn := range 20 {
		for _, role := range []contextdv1.Role{contextdv1.Role_ROLE_USER, contextdv1.Role_ROLE_ASSISTANT} {
			if _, err := r.api().AppendEvents(t.Context(), &contextdv1.AppendEventsRequest{SessionId: "s", Events: []*contextdv1.Event{said(role, text("some words that take some room in the context"))}}); err != nil {
				t.Fatal(err)
			}
		}
		if turn%5 > 0 {
			continue
		}
		if _, err := r.api().RecordModelCall(t.Context(), &contextdv1.RecordModelCallRequest{SessionId: "s", ProjectionId: r.context(t, "s").GetProjectionId(), InputTokens: 900}); err != nil {
			t.Fatal(err)
		}
		if _, err := compactions.CompactSession(t.Context(), &contextdv1.CompactSessionRequest{SessionId: "s", Strategy: "summarize", KeepLastTurns: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.api().ForkSession(t.Context(), &contextdv1.ForkSessionRequest{SessionId: "s", NewSessionId: "fork"}); err != nil {
		t.Fatal(err)
	}
	before := r.context(t, "s")
	r.end(t)

	now.Add(-int64(years.Seconds()))
	written := disklog.Written(o.Config.DataDir)
	r = startWith(t, o)
	r.await(t, serving)
	made, err := r.api().CreateSession(t.Context(), &contextdv1.CreateSessionRequest{SessionId: "made-after"})
	if at := made.GetSession().GetCreateTime().AsTime(); err != nil || at.Before(written) {
		t.Errorf("a new session is dated %s, and the store was written to at %s: %v", at, written, err)
	}
	if after := r.context(t, "s"); after.GetPrefixHash() != before.GetPrefixHash() {
		t.Errorf("the context is %s and was %s", after.GetPrefixHash(), before.GetPrefixHash())
	}
	list, err := r.api().ListProjections(t.Context(), &contextdv1.ListProjectionsRequest{SessionId: "s"})
	if err != nil || len(list.GetProjections()) < 5 {
		t.Fatalf("%d projections, %v", len(list.GetProjections()), err)
	}
	for _, p := range list.GetProjections() {
		again, err := r.api().ReplayProjection(t.Context(), &contextdv1.ReplayProjectionRequest{SessionId: "s", ProjectionId: p.GetProjectionId()})
		if err != nil || !again.GetSame() {
			t.Errorf("%s: %v, %s", p.GetProjectionId(), err, again.GetDifference())
		}
	}
	for _, session := range []string{"s", "fork"} {
		if _, err := r.api().AppendEvents(t.Context(), say(session, "later, and earlier")); err != nil {
			t.Error(err)
		}
		stream, err := r.api().ReadEvents(t.Context(), &contextdv1.ReadEventsRequest{SessionId: session})
		if err != nil {
			t.Fatal(err)
		}
		seq := uint64(0)
		for {
			resp, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range resp.GetEvents() {
				if seq++; e.GetSeq() != seq {
					t.Errorf("%s: event %d is at %d", session, e.GetSeq(), seq)
				}
			}
		}
		if seq < 41 {
			t.Errorf("%s has %d events", session, seq)
		}
	}
	r.end(t)
}

// TestListsHaveTheTime: what lists sessions learns by which clock their times are.
func TestListsHaveTheTime(t *testing.T) {
	o := options(t, settings(t, func(c *config.Config) { c.Store = config.StoreMemory }))
	now := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	o.Clock = func() time.Time { return now }
	r := startWith(t, o)
	var header metadata.MD
	if _, err := r.api().ListSessions(t.Context(), &contextdv1.ListSessionsRequest{}, grpc.Header(&header), grpc.WaitForReady(true)); err != nil {
		t.Fatal(err)
	}
	if got := header.Get(wire.ClockHeader); len(got) != 1 || got[0] != now.Format(time.RFC3339Nano) {
		t.Errorf("it is %q", got)
	}
	r.end(t)
}

// context returns the record of a context that was assembled.
func (r *running) context(t *testing.T, session string) *contextdv1.Projection {
	t.Helper()
	stream, err := r.api().AssembleContext(t.Context(), &contextdv1.AssembleContextRequest{SessionId: session})
	if err != nil {
		t.Fatal(err)
	}
	first, err := stream.Recv()
	for rest := err; rest == nil; {
		_, rest = stream.Recv()
	}
	if err != nil {
		t.Fatal(err)
	}
	return first.GetHeader().GetProjection()
}
