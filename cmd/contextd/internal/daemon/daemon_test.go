package daemon_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/cmd/contextd/internal/daemon"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	serving    = grpc_health_v1.HealthCheckResponse_SERVING
	notServing = grpc_health_v1.HealthCheckResponse_NOT_SERVING
)

// running is a daemon and a connection to it.
type running struct {
	daemon *daemon.Daemon
	conn   *grpc.ClientConn
	stop   context.CancelFunc
	// ended gets what Run returned.
	ended chan error
}

func settings(t *testing.T, change func(c *config.Config)) config.Config {
	t.Helper()
	c := config.Default()
	c.Listen, c.DataDir = "127.0.0.1:0", t.TempDir()
	if change != nil {
		change(&c)
	}
	return c
}

func options(t *testing.T, c config.Config) daemon.Options {
	return daemon.Options{Version: "test", Config: c, Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: c.LogLevel}))}
}

func start(t *testing.T, c config.Config) *running {
	t.Helper()
	return startWith(t, options(t, c))
}

func startWith(t *testing.T, o daemon.Options) *running {
	t.Helper()
	d, err := daemon.Build(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return run(t, d)
}

func run(t *testing.T, d *daemon.Daemon) *running {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	r := &running{daemon: d, stop: stop, ended: make(chan error, 1)}
	go func() { r.ended <- d.Run(ctx) }()
	addresses := d.Addresses()
	var err error
	r.conn, err = grpc.NewClient(addresses[len(addresses)-1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		if err := r.conn.Close(); err != nil && status.Code(err) != codes.Canceled {
			t.Error(err)
		}
	})
	return r
}

func (r *running) api() contextdv1.ContextServiceClient {
	return contextdv1.NewContextServiceClient(r.conn)
}

// await waits until the daemon reports this status.
func (r *running) await(t *testing.T, want grpc_health_v1.HealthCheckResponse_ServingStatus) {
	t.Helper()
	r.awaitPart(t, "contextd.v1.ContextService", want)
}

// awaitPart waits for the health of a service or a part.
func (r *running) awaitPart(t *testing.T, name string, want grpc_health_v1.HealthCheckResponse_ServingStatus) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watch, err := grpc_health_v1.NewHealthClient(r.conn).Watch(ctx, &grpc_health_v1.HealthCheckRequest{Service: name})
	if err != nil {
		t.Fatal(err)
	}
	for {
		resp, err := watch.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if resp.GetStatus() == want {
			return
		}
	}
}

func (r *running) end(t *testing.T) {
	t.Helper()
	r.stop()
	if err := <-r.ended; err != nil {
		var stacks strings.Builder
		if errors.Is(err, daemon.ErrUnfinished) { // what it waited for runs still
			_ = pprof.Lookup("goroutine").WriteTo(&stacks, 2)
		}
		t.Errorf("%v\n%s", err, stacks.String())
	}
	if held := r.daemon.MemoryInUse(); len(held) > 0 {
		t.Errorf("all calls have ended, and memory is still held: %v", held)
	}
}

func say(id, text string) *contextdv1.AppendEventsRequest {
	return &contextdv1.AppendEventsRequest{SessionId: id, Events: []*contextdv1.Event{{Kind: &contextdv1.Event_Message{Message: &contextdv1.Message{
		Role:   contextdv1.Role_ROLE_USER,
		Blocks: []*contextdv1.Block{{Kind: &contextdv1.Block_Text{Text: &contextdv1.Text{Text: text}}}},
	}}}}}
}

func TestLifeAndRestart(t *testing.T) {
	c := settings(t, nil)
	r := start(t, c)
	r.await(t, serving)
	if _, err := r.api().AppendEvents(t.Context(), say("s", "hello")); err != nil {
		t.Fatal(err)
	}
	r.end(t)
	r = start(t, c)
	r.await(t, serving)
	got, err := r.api().GetSession(t.Context(), &contextdv1.GetSessionRequest{SessionId: "s"})
	if err != nil || got.GetSession().GetHeadSeq() != 1 {
		t.Errorf("after the restart: %v, %v", got, err)
	}
	r.end(t)
}

// TestStopEndsFollowers stops without waiting for calls that never end by
// themselves.
func TestStopEndsFollowers(t *testing.T) {
	r := start(t, settings(t, func(c *config.Config) { c.ShutdownTimeout = time.Hour }))
	r.await(t, serving)
	if _, err := r.api().AppendEvents(t.Context(), say("s", "hello")); err != nil {
		t.Fatal(err)
	}
	follower, err := r.api().ReadEvents(t.Context(), &contextdv1.ReadEventsRequest{SessionId: "s", Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	appender, err := r.api().AppendEventStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := appender.Send(&contextdv1.AppendEventStreamRequest{Append: say("s", "more")}); err != nil {
		t.Fatal(err)
	}
	if _, err := appender.Recv(); err != nil {
		t.Fatal(err)
	}
	r.stop()
	for {
		if _, err = follower.Recv(); err != nil {
			break
		}
	}
	if status.Code(err) != codes.Unavailable {
		t.Errorf("the follower got %v", err)
	}
	if _, err := appender.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("the appender got %v", err)
	}
	if err := <-r.ended; err != nil {
		t.Error(err)
	}
}

// TestStopIsBounded cuts off a call that does not end.
func TestStopIsBounded(t *testing.T) {
	r := start(t, settings(t, func(c *config.Config) { c.ShutdownTimeout = time.Millisecond }))
	r.await(t, serving)
	stuck, err := contextdv1.NewTranscriptServiceClient(r.conn).ImportTranscript(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	header := &contextdv1.ImportTranscriptRequest{Part: &contextdv1.ImportTranscriptRequest_Header{Header: &contextdv1.ImportHeader{SessionId: "s"}}}
	if err := stuck.Send(header); err != nil {
		t.Fatal(err)
	}
	// A call on the same connection makes sure that the first has arrived.
	if _, err := r.api().CountTokens(t.Context(), &contextdv1.CountTokensRequest{Text: "x"}); err != nil {
		t.Fatal(err)
	}
	r.end(t)
	if err := stuck.RecvMsg(&contextdv1.ImportTranscriptResponse{}); err == nil {
		t.Error("the call was answered")
	}
}

func TestHealth(t *testing.T) {
	r := start(t, settings(t, nil))
	r.await(t, serving)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watch, err := grpc_health_v1.NewHealthClient(r.conn).Watch(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if first, err := watch.Recv(); err != nil || first.GetStatus() != serving {
		t.Fatalf("the daemon as a whole is %v, %v", first, err)
	}
	r.stop()
	if last, err := watch.Recv(); err != nil || last.GetStatus() != notServing {
		t.Errorf("while it stops it is %v, %v", last, err)
	}
	cancel()
	if err := <-r.ended; err != nil {
		t.Error(err)
	}
}

func TestReflection(t *testing.T) {
	r := start(t, settings(t, func(c *config.Config) { c.Store = config.StoreMemory }))
	stream, err := grpc_reflection_v1.NewServerReflectionClient(r.conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = stream.Send(&grpc_reflection_v1.ServerReflectionRequest{MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_ListServices{}})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	listed := resp.GetListServicesResponse().String()
	for _, service := range []string{"contextd.v1.ContextService", "contextd.v1.TranscriptService", "contextd.v1.CompactionService", "grpc.health.v1.Health"} {
		if !strings.Contains(listed, service) {
			t.Errorf("%s is not among %s", service, listed)
		}
	}
	r.end(t)
}

func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.sock")
	c := settings(t, func(c *config.Config) { c.Listen, c.UnixSocket = "", path })
	leaveStale(t, path)
	r := start(t, c)
	r.await(t, serving)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket's mode is %v, %v", info.Mode(), err)
	}
	second := settings(t, func(c *config.Config) { c.Listen, c.UnixSocket = "", path })
	if _, err := daemon.Build(t.Context(), options(t, second)); err == nil || !strings.Contains(err.Error(), "another daemon") {
		t.Errorf("a second daemon on the socket: %v", err)
	}
	r.end(t)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := daemon.Build(t.Context(), options(t, c)); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("a file in the socket's place: %v", err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "precious" {
		t.Errorf("the file became %q, %v", b, err)
	}
}

// leaveStale leaves a socket like a killed daemon.
func leaveStale(t *testing.T, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestBuildFails leaves nothing open after any failure: what it opened can be
// opened again.
func TestBuildFails(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	tests := map[string]struct {
		change func(c *config.Config)
		want   string
	}{
		"address taken":     {func(c *config.Config) { c.Listen = taken.Addr().String() }, "address already in use"},
		"metrics taken":     {func(c *config.Config) { c.MetricsListen = taken.Addr().String() }, "metrics_listen"},
		"socket too long":   {func(c *config.Config) { c.UnixSocket = filepath.Join(dir, strings.Repeat("x", 200)) }, "that a socket's path may have"},
		"socket impossible": {func(c *config.Config) { c.UnixSocket = filepath.Join(dir, "no", "dir", "x.sock") }, "unix_socket"},
		"store of no kind":  {func(c *config.Config) { c.Store = "tape" }, "tape"},
		"directory a file":  {func(c *config.Config) { c.DataDir = os.Args[0] }, "open the store"},
		"a policy missing":  {func(c *config.Config) { c.DefaultPolicy = "lean" }, "lean"},
		"limits impossible": {func(c *config.Config) { c.Limits.StreamWindow = 0 }, "stream_window"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := settings(t, func(c *config.Config) { c.DataDir = dir })
			test.change(&c)
			if _, err := daemon.Build(t.Context(), options(t, c)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v; want an error about %s", err, test.want)
			}
		})
	}
	r := start(t, settings(t, func(c *config.Config) { c.DataDir = dir }))
	r.await(t, serving)
	if _, err := daemon.Build(t.Context(), options(t, settings(t, func(c *config.Config) { c.DataDir = dir }))); err == nil {
		t.Error("two daemons have one directory")
	}
	r.end(t)
}
