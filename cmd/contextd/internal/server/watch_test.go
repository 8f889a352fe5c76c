package server_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	"github.com/contextd/contextd/cmd/contextd/internal/server"
	"github.com/contextd/contextd/internal/lifecycle"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func serveBus(t *testing.T, o lifecycle.BusOptions) (*api, *lifecycle.Bus) {
	t.Helper()
	bus := lifecycle.NewBus(o)
	return serve(t, stores["memory"](t), func(o *server.Options) { o.Lifecycle = bus }), bus
}

type watchStream = contextdv1.CompactionService_WatchLifecycleClient

// watch returns a stream that watches.
func (a *api) watch(ctx context.Context, t *testing.T, sessions ...string) watchStream {
	t.Helper()
	stream, err := a.compaction.WatchLifecycle(ctx, &contextdv1.WatchLifecycleRequest{SessionIds: sessions})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Header(); err != nil {
		t.Fatal(err)
	}
	return stream
}

func TestWatchLifecycle(t *testing.T) {
	a, bus := serveBus(t, lifecycle.BusOptions{})
	everything, one := a.watch(t.Context(), t), a.watch(t.Context(), t, "t", "r")
	published := []lifecycle.Event{
		{SessionID: "s", Type: lifecycle.CompactionStarted, Time: epoch, Attributes: map[string]string{"mode": "auto", "trigger": "threshold"}},
		{SessionID: "t", Type: lifecycle.SummaryReady, Time: epoch.Add(time.Second), Attributes: map[string]string{"summary_id": "s9-00"}},
		{Type: lifecycle.BreakerOpen, Attributes: map[string]string{"summarizer": "local"}},
		{SessionID: "t", Type: lifecycle.Compacted, Time: epoch},
	}
	for _, e := range published {
		bus.Publish(e)
	}
	for name, test := range map[string]struct {
		stream watchStream
		want   []int
	}{"everything": {everything, []int{0, 1, 2, 3}}, "one session": {one, []int{1, 2, 3}}} {
		for _, i := range test.want {
			resp, err := test.stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			e := published[i]
			want := &contextdv1.LifecycleEvent{SessionId: e.SessionID, Type: string(e.Type), Attributes: e.Attributes}
			if !e.Time.IsZero() {
				want.Time = timestamppb.New(e.Time)
			}
			if !proto.Equal(resp.GetEvent(), want) {
				t.Errorf("%s: got %v; want %v", name, resp.GetEvent(), want)
			}
		}
	}
}

// TestASlowWatcherIsToldWhatItMissed: what it got and the count of what it lost is
// everything.
func TestASlowWatcherIsToldWhatItMissed(t *testing.T) {
	a, bus := serveBus(t, lifecycle.BusOptions{Backlog: 4})
	stream := a.watch(t.Context(), t, "s")
	const published = 2000
	large := strings.Repeat("x", 4<<10) // more than the connection holds
	for i := range published {
		bus.Publish(lifecycle.Event{SessionID: "s", Type: lifecycle.SummaryFailed, Attributes: map[string]string{"n": strconv.Itoa(i), "reason": large}})
	}
	lost, next := 0, 0
	for next < published {
		resp, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if e := resp.GetEvent(); e.GetType() == "events_lost" {
			n, err := strconv.Atoi(e.GetAttributes()["count"])
			if err != nil || n < 1 {
				t.Fatalf("lost %v", e.GetAttributes())
			}
			lost += n
			next += n
		} else {
			if got := e.GetAttributes()["n"]; got != strconv.Itoa(next) {
				t.Fatalf("got event %s; want %d", got, next)
			}
			next++
		}
	}
	if next != published || lost == 0 {
		t.Errorf("%d of %d events are accounted for, %d as lost", next, published, lost)
	}
}

func TestWatchEnds(t *testing.T) {
	a, _ := serveBus(t, lifecycle.BusOptions{})
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
	a, _ := serveBus(t, lifecycle.BusOptions{})
	stream, err := a.compaction.WatchLifecycle(t.Context(), &contextdv1.WatchLifecycleRequest{SessionIds: []string{"s", "../s"}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = stream.Recv()
	checkRefusal(t, err, badInput{code: codes.InvalidArgument, reason: invalid, field: "session_ids[1]"})
}
