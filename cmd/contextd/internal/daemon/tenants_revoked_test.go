package daemon_test

import (
	"context"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// TestCallsEndWithTheirToken: whatever a call waits for (its client, events of the log, a summary,
// a task), it ends when its caller's token is removed. Those of others go on.
func TestCallsEndWithTheirToken(t *testing.T) {
	of := startTenants(t, 1, func(c *config.Config) {
		c.Summarizers, c.DefaultSummarizer = map[string]config.Summarizer{"house": {Type: config.SummarizerPull}}, "house"
	})
	t.Cleanup(func() { of.end(t) })
	kept := runAll(of.as(t.Context(), "t1"), t, of)
	ended := runAll(of.as(t.Context(), "first"), t, of)

	delete(of.entries, "first")
	of.list(t)
	of.signals <- syscall.SIGHUP
	// What is sent until the call is ended is taken.
	appends := ended["appends"]
	ended["appends"] = func() error {
		return untilError(func() (struct{}, error) { return struct{}{}, appends() })
	}
	for name, receive := range ended {
		if err := receive(); status.Code(err) != codes.Unauthenticated {
			t.Errorf("%s of a removed token: %v", name, err)
		}
	}
	// The daemon still waits for them: what is appended now arrives.
	as := of.as(t.Context(), "t1")
	_, err := of.api().AppendEvents(as, say("s", "more"))
	check(t, err)
	check(t, kept["follow"]())
	check(t, kept["appends"]())
}

// runAll begins calls that go on until they are ended, each of which has begun at the daemon.
// The functions receive what comes next.
func runAll(as context.Context, t *testing.T, of *tenants) map[string]func() error {
	t.Helper()
	api, compaction := of.api(), contextdv1.NewCompactionServiceClient(of.conn)
	for range 4 {
		_, err := api.AppendEvents(as, &contextdv1.AppendEventsRequest{SessionId: "s", Events: []*contextdv1.Event{
			said(contextdv1.Role_ROLE_USER, text(strings.Repeat("long ", 300))), said(contextdv1.Role_ROLE_ASSISTANT, text(strings.Repeat("long ", 300))),
		}})
		check(t, err)
	}
	follow, err := api.ReadEvents(as, &contextdv1.ReadEventsRequest{SessionId: "s", Follow: true})
	check(t, err)
	for last := uint64(0); last < 8; {
		got, err := follow.Recv()
		check(t, err)
		for _, e := range got.GetEvents() {
			last = e.GetSeq()
		}
	}
	appends, err := api.AppendEventStream(as)
	check(t, err)
	send := func() error {
		return appends.Send(&contextdv1.AppendEventStreamRequest{Append: say("other", "a")})
	}
	check(t, send())
	_, err = appends.Recv()
	check(t, err)
	watch, err := compaction.WatchLifecycle(as, &contextdv1.WatchLifecycleRequest{})
	check(t, err)
	hooks, err := compaction.ServeHooks(as)
	check(t, err)
	check(t, hooks.Send(&contextdv1.ServeHooksRequest{Part: &contextdv1.ServeHooksRequest_Subscribe{Subscribe: &contextdv1.HookSubscription{PostCompact: true}}}))
	for _, opened := range []grpc.ClientStream{watch, hooks} {
		_, err = opened.Header()
		check(t, err)
	}
	compacted := make(chan error, 1)
	go func() {
		_, err := compaction.CompactSession(as, &contextdv1.CompactSessionRequest{SessionId: "s", Strategy: "summarize", KeepLastTurns: 1})
		compacted <- err
	}()
	tasks, err := compaction.LeaseSummaryTasks(as, &contextdv1.LeaseSummaryTasksRequest{WorkerId: "w"})
	check(t, err)
	_, err = tasks.Recv() // the compaction waits for its summary
	check(t, err)
	return map[string]func() error{
		"follow": func() error { _, err := follow.Recv(); return err },
		"appends": func() error {
			if err := send(); err != nil {
				t.Log(err) // the stream is over: the reason is received
			}
			_, err := appends.Recv()
			return err
		},
		"watch":      func() error { return untilError(watch.Recv) },
		"hooks":      func() error { _, err := hooks.Recv(); return err },
		"tasks":      func() error { _, err := tasks.Recv(); return err },
		"compaction": func() error { return <-compacted },
	}
}

func untilError[T any](receive func() (T, error)) error {
	for {
		if _, err := receive(); err != nil {
			return err
		}
	}
}
