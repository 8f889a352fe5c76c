package server_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	"github.com/contextd/contextd/cmd/contextd/internal/server"
	"github.com/contextd/contextd/internal/lifecycle"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// telling is a server with a journal of its own, of the sessions s and t.
type telling struct {
	*api
	bus     *lifecycle.Bus
	journal *lifecycle.Journal
}

func serveBus(t *testing.T, o lifecycle.BusOptions) telling {
	t.Helper()
	out := telling{bus: lifecycle.NewBus(o)}
	out.api = serve(t, stores["memory"](t), func(o *server.Options) {
		out.journal = lifecycle.NewJournal(o.Store, out.bus, o.Clock)
		o.Lifecycle = out.journal
	})
	for _, id := range []string{"s", "t"} {
		out.append(t, id, user("Hello."))
	}
	return out
}

// happens records an event of a session.
func (w telling) happens(t *testing.T, session string, what lifecycle.Type, attributes ...string) {
	t.Helper()
	entry := lifecycle.Entry{SessionID: session, Events: []lifecycle.Event{lifecycle.Happened(what, attributes...)}}
	if err := w.journal.Put(t.Context(), entry); err != nil {
		t.Fatal(err)
	}
}

type watchStream = contextdv1.CompactionService_WatchLifecycleClient

// watch returns a stream that watches from now on.
func (a *api) watch(ctx context.Context, t *testing.T, sessions ...string) watchStream {
	t.Helper()
	return a.watchAfter(ctx, t, &contextdv1.WatchLifecycleRequest{SessionIds: sessions})
}

func (a *api) watchAfter(ctx context.Context, t *testing.T, req *contextdv1.WatchLifecycleRequest) watchStream {
	t.Helper()
	stream, err := a.compaction.WatchLifecycle(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Header(); err != nil {
		t.Fatal(err)
	}
	return stream
}

func after(session string, number uint64) *contextdv1.LifecycleCursor {
	return &contextdv1.LifecycleCursor{SessionId: session, Number: number}
}

// next is what a stream sends next, as "session number type attributes".
func next(t *testing.T, stream watchStream) string {
	t.Helper()
	resp, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	e := resp.GetEvent()
	if (e.GetTime() == nil) != (e.GetNumber() == 0) {
		t.Errorf("%v has the time %v", e, e.GetTime())
	}
	return fmt.Sprint(e.GetSessionId(), " ", e.GetNumber(), " ", e.GetType(), " ", e.GetAttributes())
}

func TestWatchLifecycle(t *testing.T) {
	a := serveBus(t, lifecycle.BusOptions{})
	a.happens(t, "s", lifecycle.SummaryStarted)
	streams := map[string]watchStream{
		"everything":              a.watch(t.Context(), t),
		"one session":             a.watch(t.Context(), t, "t", "r"),
		"one from its first":      a.watchAfter(t.Context(), t, &contextdv1.WatchLifecycleRequest{SessionIds: []string{"s"}, After: []*contextdv1.LifecycleCursor{after("s", 0)}}),
		"one from its second":     a.watchAfter(t.Context(), t, &contextdv1.WatchLifecycleRequest{SessionIds: []string{"s"}, After: []*contextdv1.LifecycleCursor{after("s", 1)}}),
		"all, one from the first": a.watchAfter(t.Context(), t, &contextdv1.WatchLifecycleRequest{After: []*contextdv1.LifecycleCursor{after("s", 0)}}),
	}
	a.happens(t, "s", lifecycle.CompactionStarted, "mode", "auto", "trigger", "threshold", "strategy", "")
	a.happens(t, "t", lifecycle.SummaryReady, "summary_id", "s9-00")
	a.bus.Publish(lifecycle.Happened(lifecycle.BreakerOpen, "summarizer", "local"))
	a.happens(t, "t", lifecycle.Compacted)
	const started, compaction, ready, open, compacted = "s 1 summary_started map[]", "s 2 compaction_started map[mode:auto trigger:threshold]",
		"t 1 summary_ready map[summary_id:s9-00]", " 0 breaker_open map[summarizer:local]", "t 2 compacted map[]"
	for name, want := range map[string][]string{
		"everything":              {compaction, ready, open, compacted},
		"one session":             {open, ready, compacted},
		"one from its first":      {open, started, compaction},
		"one from its second":     {open, compaction},
		"all, one from the first": {started, compaction, ready, open, compacted},
	} {
		var got []string
		for range want {
			got = append(got, next(t, streams[name]))
		}
		// Sessions and breakers are in no order to each other.
		slices.Sort(want)
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: got %q; want %q", name, got, want)
		}
	}
}

// TestASlowWatcher: one of all sessions learns how much it missed, so that what it got and the
// count of what it lost is everything; one that names the session misses nothing.
func TestASlowWatcher(t *testing.T) {
	a := serveBus(t, lifecycle.BusOptions{Backlog: 4})
	all, named := a.watch(t.Context(), t), a.watch(t.Context(), t, "s")
	const happened = 20_000 // more than the connection holds
	events := make([]lifecycle.Event, happened)
	for i := range events {
		events[i] = lifecycle.Happened(lifecycle.SummaryFailed, "reason", strings.Repeat("x", 1000))
	}
	if err := a.journal.Put(t.Context(), lifecycle.Entry{SessionID: "s", Events: events}); err != nil {
		t.Fatal(err)
	}
	lost := 0
	for at := 0; at < happened; {
		resp, err := all.Recv()
		if err != nil {
			t.Fatal(err)
		}
		e := resp.GetEvent()
		if e.GetType() == "events_lost" {
			n, err := strconv.Atoi(e.GetAttributes()["count"])
			if err != nil || n < 1 {
				t.Fatalf("lost %v", e.GetAttributes())
			}
			lost, at = lost+n, at+n
		} else if at++; e.GetNumber() != uint64(at) {
			t.Fatalf("got event %d; want %d", e.GetNumber(), at)
		}
	}
	if lost == 0 {
		t.Error("the slow watcher lost nothing")
	}
	for i := range uint64(happened) {
		resp, err := named.Recv()
		if err != nil || resp.GetEvent().GetNumber() != i+1 {
			t.Fatalf("got %v, %v; want event %d", resp, err, i+1)
		}
	}
}

func TestWatchEnds(t *testing.T) {
	a := serveBus(t, lifecycle.BusOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	left := a.watch(ctx, t)
	cancel()
	if _, err := left.Recv(); status.Code(err) != codes.Canceled {
		t.Errorf("it ended with %v", err)
	}
	stream := a.watch(t.Context(), t)
	a.server.Drain()
	_, err := stream.Recv()
	checkRefusal(t, err, badInput{code: codes.Unavailable, reason: apierr.ReasonDraining})
	for name, begin := range map[string]func() error{
		"watch": func() error {
			stream, err := a.compaction.WatchLifecycle(t.Context(), &contextdv1.WatchLifecycleRequest{})
			if err == nil {
				_, err = stream.Recv()
			}
			return err
		},
		"hooks": func() error {
			stream, err := a.compaction.ServeHooks(t.Context())
			if err == nil {
				_, err = stream.Recv()
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			checkRefusal(t, begin(), badInput{code: codes.Unavailable, reason: apierr.ReasonDraining})
		})
	}
}

func TestWatchRefusals(t *testing.T) {
	a := serveBus(t, lifecycle.BusOptions{})
	a.happens(t, "s", lifecycle.Compacted)
	for field, req := range map[string]*contextdv1.WatchLifecycleRequest{
		"session_ids[1]":      {SessionIds: []string{"s", "../s"}},
		"after[0].session_id": {After: []*contextdv1.LifecycleCursor{after("../s", 1)}},
		"after[1].session_id": {SessionIds: []string{"s"}, After: []*contextdv1.LifecycleCursor{after("s", 1), after("t", 0)}},
		"after[2].session_id": {After: []*contextdv1.LifecycleCursor{after("s", 1), after("t", 0), after("s", 0)}},
		"after[0].number":     {After: []*contextdv1.LifecycleCursor{after("s", 2)}},
		"after[1].number":     {After: []*contextdv1.LifecycleCursor{after("nobody", 0), after("never", 1)}},
	} {
		t.Run(field, func(t *testing.T) {
			stream, err := a.compaction.WatchLifecycle(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			_, err = stream.Recv()
			checkRefusal(t, err, badInput{code: codes.InvalidArgument, reason: invalid, field: field})
		})
	}
}
