package daemon_test

import (
	"bytes"
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// client connects to the same daemon again.
func (r *running) client(t *testing.T) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(r.conn.Target(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return conn
}

// TestIdleClientsMakeRoom connects far more clients than there may be, silent ones and
// such that speak HTTP/2 and then stop: others are served all the same, and the metrics
// say what became of whom.
func TestIdleClientsMakeRoom(t *testing.T) {
	metrics := free(t)
	r := start(t, settings(t, func(c *config.Config) {
		c.Store, c.MaxConnections, c.MetricsListen = config.StoreMemory, 20, metrics
	}))
	r.await(t, serving)
	for i := range 200 {
		idle, err := net.Dial("tcp", r.conn.Target())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = idle.Close() })
		if i%2 == 0 {
			// The preface and empty settings; nothing after.
			if _, err := idle.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")); err != nil {
				t.Fatal(err)
			}
		}
		scraper, err := net.Dial("tcp", metrics)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = scraper.Close() })
	}
	fresh := r.client(t)
	if _, err := grpc_health_v1.NewHealthClient(fresh).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}); err != nil {
		t.Errorf("health: %v", err)
	}
	untilThereIsRoom(t, "max_connections", func() error {
		_, err := contextdv1.NewContextServiceClient(fresh).AppendEvents(t.Context(), say("s", "hello"))
		return err
	})
	body := scrape(t, "http://"+metrics+"/metrics")
	if strings.Contains(body, "contextd_connections_evicted_total{") == strings.Contains(body, `contextd_connections_evicted_total{otel_scope_name="contextd"} 0`) {
		t.Errorf("the metrics do not report evicted clients:\n%s", grep(body, "contextd_connections"))
	}
	r.end(t)
}

// TestBusyClientsStay has as many clients with calls that last as there may be: none of
// them is disconnected, one more gets the reason for its refusal, and can check the health.
func TestBusyClientsStay(t *testing.T) {
	const limit = 3
	r := start(t, settings(t, func(c *config.Config) { c.Store, c.MaxConnections = config.StoreMemory, limit }))
	r.await(t, serving)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var watches []grpc.ServerStreamingClient[contextdv1.WatchLifecycleResponse]
	for _, conn := range []*grpc.ClientConn{r.conn, r.client(t), r.client(t)} {
		watch, err := contextdv1.NewCompactionServiceClient(conn).WatchLifecycle(ctx, &contextdv1.WatchLifecycleRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := watch.Header(); err != nil {
			t.Fatal(err)
		}
		watches = append(watches, watch)
	}
	for range 40 {
		extra := r.client(t)
		if _, err := grpc_health_v1.NewHealthClient(extra).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}); err != nil {
			t.Fatalf("health: %v", err)
		}
		_, err := contextdv1.NewContextServiceClient(extra).CountTokens(t.Context(), &contextdv1.CountTokensRequest{Text: "x"})
		if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "max_connections") {
			t.Fatalf("a call of one more client: %v", err)
		}
	}
	cancel()
	for _, watch := range watches {
		if _, err := watch.Recv(); status.Code(err) != codes.Canceled {
			t.Errorf("a watcher got %v", err)
		}
	}
	r.end(t)
}

// TestCallsAreBounded refuses calls beyond the bound, whichever connection they come on.
func TestCallsAreBounded(t *testing.T) {
	r := start(t, settings(t, func(c *config.Config) { c.Store, c.MaxCalls = config.StoreMemory, 2 }))
	r.await(t, serving)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 2 {
		watch, err := contextdv1.NewCompactionServiceClient(r.client(t)).WatchLifecycle(ctx, &contextdv1.WatchLifecycleRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := watch.Header(); err != nil {
			t.Fatal(err)
		}
	}
	_, err := r.api().CountTokens(t.Context(), &contextdv1.CountTokensRequest{Text: "x"})
	if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "max_calls") {
		t.Errorf("a third call: %v", err)
	}
	if _, err := grpc_health_v1.NewHealthClient(r.conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}); err != nil {
		t.Errorf("health: %v", err)
	}
	cancel()
	untilThereIsRoom(t, "max_calls", func() error {
		_, err := r.api().CountTokens(t.Context(), &contextdv1.CountTokensRequest{Text: "x"})
		return err
	})
	r.end(t)
}

// untilThereIsRoom calls until a setting refuses no more.
func untilThereIsRoom(t *testing.T, setting string, call func() error) {
	t.Helper()
	for err := call(); err != nil; err = call() {
		if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), setting) {
			t.Fatal(err)
		}
	}
}

// TestAProcessIsBounded: a process that connects more often than it may, each time with a call
// that lasts, can check the health, and learns which setting allows no more. Once one of its
// connections ends, the one that was refused is served.
func TestAProcessIsBounded(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "c.sock")
	r := start(t, settings(t, func(c *config.Config) {
		c.Store, c.UnixSocket, c.MaxClientConnections, c.MaxClientCalls = config.StoreMemory, socket, 3, 3
	}))
	r.await(t, serving) // on the first connection
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	dial := func() *grpc.ClientConn {
		conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() }) // one is closed before
		return conn
	}
	watch := func(conn *grpc.ClientConn) error {
		stream, err := contextdv1.NewCompactionServiceClient(conn).WatchLifecycle(ctx, &contextdv1.WatchLifecycleRequest{})
		if err == nil {
			_, err = stream.Header()
		}
		if err == nil {
			return nil
		}
		_, err = stream.Recv()
		return err
	}
	refused := func(err error, setting string) {
		t.Helper()
		info, retry := details(err)
		if status.Code(err) != codes.ResourceExhausted || info.GetReason() != "BUSY" || info.GetMetadata()["setting"] != setting || retry.GetRetryDelay().AsDuration() <= 0 {
			t.Errorf("not refused by %s: %v %v %v", setting, err, info, retry)
		}
	}
	first, second := dial(), dial()
	for _, conn := range []*grpc.ClientConn{first, second, second} {
		if err := watch(conn); err != nil {
			t.Fatal(err)
		}
	}
	_, err := contextdv1.NewContextServiceClient(first).CountTokens(ctx, &contextdv1.CountTokensRequest{Text: "x"})
	refused(err, "max_client_calls")
	third := dial()
	_, err = contextdv1.NewContextServiceClient(third).CountTokens(ctx, &contextdv1.CountTokensRequest{Text: "x"})
	refused(err, "max_client_connections")
	for _, conn := range []*grpc.ClientConn{first, third} {
		if _, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{}); err != nil {
			t.Errorf("health: %v", err)
		}
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	untilThereIsRoom(t, "max_client_c", func() error { // connections, and then calls
		_, err := contextdv1.NewContextServiceClient(third).CountTokens(ctx, &contextdv1.CountTokensRequest{Text: "x"})
		return err
	})
	cancel()
	r.end(t)
}

// details are those of an error of the API.
func details(err error) (info *errdetails.ErrorInfo, retry *errdetails.RetryInfo) {
	for _, d := range status.Convert(err).Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			info = d
		case *errdetails.RetryInfo:
			retry = d
		}
	}
	return info, retry
}

func grep(text, word string) string {
	var out bytes.Buffer
	for line := range strings.Lines(text) {
		if strings.Contains(line, word) {
			out.WriteString(line)
		}
	}
	return out.String()
}

// An upload that stops halfway is ended, since it holds a place that others wait for. A
// stream of appends may be idle for as long as its client likes.
func TestAnUploadThatStopsIsEnded(t *testing.T) {
	r := start(t, settings(t, func(c *config.Config) { c.Store, c.ReceiveTimeout = config.StoreMemory, 100*time.Millisecond }))
	r.await(t, serving)
	appends, err := r.api().AppendEventStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	api := contextdv1.NewTranscriptServiceClient(r.conn)
	in, err := api.ImportTranscript(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := in.Send(&contextdv1.ImportTranscriptRequest{Part: &contextdv1.ImportTranscriptRequest_Header{Header: &contextdv1.ImportHeader{SessionId: "s"}}}); err != nil {
		t.Fatal(err)
	}
	if err := in.RecvMsg(&contextdv1.ImportTranscriptResponse{}); err == nil || !strings.Contains(err.Error(), "receive_timeout") {
		t.Errorf("an import that stops: %v", err)
	}
	convert, err := api.ConvertTranscript(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := convert.Recv(); err == nil || !strings.Contains(err.Error(), "receive_timeout") {
		t.Errorf("a conversion that stops: %v", err)
	}
	event := said(contextdv1.Role_ROLE_USER, text("Still there?"))
	if err := appends.Send(&contextdv1.AppendEventStreamRequest{Append: &contextdv1.AppendEventsRequest{SessionId: "s", Events: []*contextdv1.Event{event}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := appends.Recv(); err != nil {
		t.Errorf("an idle stream of appends: %v", err)
	}
	if err := appends.CloseSend(); err != nil {
		t.Error(err)
	}
	r.end(t)
}
