package transport_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/cmd/contextd/internal/transport"
	"github.com/contextd/contextd/internal/memory"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// bounded is a server whose handlers wait, and give large answers.
type bounded struct {
	contextdv1.UnimplementedContextServiceServer
	entered, leave chan struct{}
	answer         string
	ended          chan error // gets how ReadEvents ended
}

func (b bounded) CountTokens(ctx context.Context, r *contextdv1.CountTokensRequest) (*contextdv1.CountTokensResponse, error) {
	if b.entered == nil || proto.Size(r) < 1<<10 {
		return &contextdv1.CountTokensResponse{}, nil
	}
	b.entered <- struct{}{}
	select {
	case <-b.leave:
	case <-ctx.Done():
	}
	return &contextdv1.CountTokensResponse{}, nil
}

func (b bounded) ReadEvents(_ *contextdv1.ReadEventsRequest, stream grpc.ServerStreamingServer[contextdv1.ReadEventsResponse]) error {
	var err error
	for range 100 {
		if err = stream.Send(&contextdv1.ReadEventsResponse{ChainHead: b.answer}); err != nil {
			break
		}
	}
	b.ended <- err
	return err
}

func serveBounded(t *testing.T, b transport.Bounds, s bounded) contextdv1.ContextServiceClient {
	t.Helper()
	return contextdv1.NewContextServiceClient(dialBounded(t, b, s))
}

// dialBounded serves on a socket, through a Listener.
func dialBounded(t *testing.T, b transport.Bounds, s bounded) *grpc.ClientConn {
	t.Helper()
	g, err := transport.NewServer(transport.Options{
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)), MaxMessageBytes: 4 << 20, MaxStreams: 1000, Bounds: b, ConnectionIdle: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	contextdv1.RegisterContextServiceServer(g, s)
	grpc_health_v1.RegisterHealthServer(g, health.NewServer())
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() {
		served <- g.Serve(transport.Limited(tcp, transport.ConnectionLimits{Max: 10, MaxPerClient: 10}, slog.New(slog.DiscardHandler)))
	}()
	conn, err := grpc.NewClient(tcp.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		g.Stop()
		g.GracefulStop() // waits for the handlers, which Stop does not
		if err := <-served; err != nil {
			t.Error(err)
		}
		for name, budget := range map[string]*memory.Budget{"small": b.SmallRequests, "large": b.LargeRequests, "decoded": b.DecodedRequests, "answers": b.Answers} {
			if n := budget.Used(); n != 0 {
				t.Errorf("%d bytes of %s are used after all calls", n, name)
			}
		}
	})
	return conn
}

// TestOneRequest: no request, or two where there must be one, are the client's fault.
func TestOneRequest(t *testing.T) {
	conn := dialBounded(t, roomy(), bounded{})
	for requests, said := range []string{"no request", "", "more than one request"} {
		stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, contextdv1.ContextService_CountTokens_FullMethodName)
		if err != nil {
			t.Fatal(err)
		}
		for range requests {
			if err := stream.SendMsg(&contextdv1.CountTokensRequest{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		err = stream.RecvMsg(&contextdv1.CountTokensResponse{})
		if said == "" && err != nil || said != "" && (status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), said)) {
			t.Errorf("%d requests: %v", requests, err)
		}
		for err == nil {
			err = stream.RecvMsg(&contextdv1.CountTokensResponse{})
		}
	}
}

// TestViolationsAreBounded: what is wrong with a large request is not kept in full, since it
// takes many times the memory of the request.
func TestViolationsAreBounded(t *testing.T) {
	client := serveBounded(t, roomy(), bounded{})
	message := &contextdv1.Message{Role: contextdv1.Role_ROLE_USER}
	for range 150_000 {
		message.Blocks = append(message.Blocks, &contextdv1.Block{})
	}
	request := &contextdv1.AppendEventsRequest{SessionId: "s", Events: []*contextdv1.Event{{Kind: &contextdv1.Event_Message{Message: message}}}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := client.AppendEvents(t.Context(), request)
	runtime.ReadMemStats(&after)
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "events[0].message.blocks[0]") {
		t.Errorf("%v", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 75<<20 {
		t.Errorf("the refusal of a request of 300 KB took %d MiB", took>>20)
	}
}

// TestRequestsAreBounded: while a large request is worked on, another waits and gets to
// come again, and small ones pass.
func TestRequestsAreBounded(t *testing.T) {
	b := roomy()
	b.LargeRequests = memory.NewBudget("request_memory", 4<<20, time.Millisecond)
	s := bounded{entered: make(chan struct{}, 1), leave: make(chan struct{})}
	client := serveBounded(t, b, s)
	large := &contextdv1.CountTokensRequest{Text: strings.Repeat("x", 2<<20)}
	first := make(chan error, 1)
	go func() {
		_, err := client.CountTokens(t.Context(), large)
		first <- err
	}()
	<-s.entered
	_, err := client.CountTokens(t.Context(), large)
	if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "request_memory") {
		t.Errorf("another large request: %v", err)
	}
	if _, err := client.CountTokens(t.Context(), &contextdv1.CountTokensRequest{Text: "x"}); err != nil {
		t.Errorf("a small request: %v", err)
	}
	close(s.leave)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if _, err := client.CountTokens(t.Context(), large); err != nil {
		t.Errorf("with the first one gone: %v", err)
	}
	<-s.entered
}

// TestDenseRequests: what is small as it comes and large once it is decoded is refused before it
// takes memory, or waits for what others hold.
func TestDenseRequests(t *testing.T) {
	b := roomy()
	b.DecodedRequests = memory.NewBudget("request_memory", 16<<20, time.Millisecond)
	s := bounded{entered: make(chan struct{}, 1), leave: make(chan struct{})}
	client := serveBounded(t, b, s)
	blocks := func(n int) *contextdv1.CountTokensRequest {
		return &contextdv1.CountTokensRequest{
			Message: &contextdv1.Message{Role: contextdv1.Role_ROLE_USER, Blocks: slices.Repeat([]*contextdv1.Block{{Kind: &contextdv1.Block_Text{Text: &contextdv1.Text{Text: "x"}}}}, n)},
		}
	}
	decision := &contextdv1.CompactionDecision{ThroughSeq: 1, DigestTokens: 1, KeptSeqs: make([]uint64, 3<<20)}
	for name, r := range map[string]*contextdv1.AppendEventsRequest{
		"empty messages": {SessionId: "s", Events: slices.Repeat([]*contextdv1.Event{{}}, 1<<20)},
		"numbers":        {SessionId: "s", Events: []*contextdv1.Event{{Kind: &contextdv1.Event_Compaction{Compaction: &contextdv1.Compaction{Decision: decision}}}}},
	} {
		if _, err := client.AppendEvents(t.Context(), r); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "max_batch_bytes") {
			t.Errorf("%s: %v", name, err)
		}
	}
	first := make(chan error, 1)
	go func() {
		_, err := client.CountTokens(t.Context(), blocks(40_000))
		first <- err
	}()
	<-s.entered
	if _, err := client.CountTokens(t.Context(), blocks(40_000)); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "request_memory") {
		t.Errorf("another dense request: %v", err)
	}
	if _, err := client.CountTokens(t.Context(), &contextdv1.CountTokensRequest{Text: "x"}); err != nil {
		t.Errorf("a small request: %v", err)
	}
	close(s.leave)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if used := b.DecodedRequests.Used(); used != 0 {
		t.Errorf("%d bytes are still held", used)
	}
}

// TestRequestSizes refuses what is too large before it is read, packed or not.
func TestRequestSizes(t *testing.T) {
	client := serveBounded(t, roomy(), bounded{})
	for name, test := range map[string]struct {
		size    int
		options []grpc.CallOption
		code    codes.Code
	}{
		"fits":                 {7 << 20, nil, codes.OK},
		"too large":            {9 << 20, nil, codes.ResourceExhausted},
		"packed":               {7 << 20, []grpc.CallOption{grpc.UseCompressor(gzip.Name)}, codes.OK},
		"packed and too large": {90 << 20, []grpc.CallOption{grpc.UseCompressor(gzip.Name)}, codes.ResourceExhausted},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := client.CountTokens(t.Context(), &contextdv1.CountTokensRequest{Text: strings.Repeat("x", test.size)}, test.options...)
			if status.Code(err) != test.code || err != nil && !strings.Contains(err.Error(), "max_batch_bytes") {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestHealthChecksAreSmall, packed or not: no budget holds them up.
func TestHealthChecksAreSmall(t *testing.T) {
	client := grpc_health_v1.NewHealthClient(dialBounded(t, roomy(), bounded{}))
	for name, options := range map[string][]grpc.CallOption{"plain": nil, "packed": {grpc.UseCompressor(gzip.Name)}} {
		for size, want := range map[int]codes.Code{60 << 10: codes.NotFound, 70 << 10: codes.ResourceExhausted, 3 << 20: codes.ResourceExhausted} {
			_, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: strings.Repeat("x", size)}, options...)
			if status.Code(err) != want {
				t.Errorf("%s, %d bytes: %v", name, size, err)
			}
		}
	}
}

// TestHealthIsWatchedByFew: a client's watches of the health are bounded, and take no place of its
// other calls.
func TestHealthIsWatchedByFew(t *testing.T) {
	conn := dialBounded(t, roomy(), bounded{})
	watch := func() error {
		stream, err := grpc_health_v1.NewHealthClient(conn).Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
		if err == nil {
			_, err = stream.Recv()
		}
		return err
	}
	for i := range 512 {
		if err := watch(); err != nil {
			t.Fatalf("watch %d: %v", i+1, err)
		}
	}
	if err := watch(); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("one more: %v", err)
	}
	if _, err := contextdv1.NewContextServiceClient(conn).CountTokens(t.Context(), &contextdv1.CountTokensRequest{Text: "x"}); err != nil {
		t.Error(err)
	}
}

// TestPackedRequests hold what they are unpacked, however long their calls last: one that lasts keeps
// nobody else from sending packed requests.
func TestPackedRequests(t *testing.T) {
	b := roomy()
	s := bounded{entered: make(chan struct{}), leave: make(chan struct{})}
	client := serveBounded(t, b, s)
	ended := make(chan error, 2)
	for _, size := range []int{2 << 10, 3 << 20} {
		go func() {
			_, err := client.CountTokens(t.Context(), &contextdv1.CountTokensRequest{Text: strings.Repeat("x", size)}, grpc.UseCompressor(gzip.Name))
			ended <- err
		}()
		<-s.entered
	}
	if small := b.SmallRequests.Used(); small < 2<<10 || small > 3<<10 {
		t.Errorf("%d bytes are held of small requests", small)
	}
	if large := b.LargeRequests.Used(); large < 3<<20 || large > 3<<20+100 {
		t.Errorf("%d bytes are held of large requests", large)
	}
	close(s.leave)
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestSlowClients ends the call of a client that does not take its answer. A large one
// that gRPC holds for it still costs the connection.
func TestSlowClients(t *testing.T) {
	for name, size := range map[string]int{"small answers": 10 << 10, "a large answer": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			b := roomy()
			b.SendTimeout = 100 * time.Millisecond
			s := bounded{answer: strings.Repeat("x", size), ended: make(chan error, 1)}
			stream, err := serveBounded(t, b, s).ReadEvents(t.Context(), &contextdv1.ReadEventsRequest{SessionId: "s"})
			if err != nil {
				t.Fatal(err)
			}
			if err := <-s.ended; err == nil {
				t.Error("all was sent")
			}
			for err == nil {
				_, err = stream.Recv()
			}
			if errors.Is(err, io.EOF) {
				t.Error("the client was assured that all was sent")
			}
		})
	}
}
