package transport_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	"github.com/contextd/contextd/cmd/contextd/internal/transport"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/memory"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service answers every call in the way that the session_id asks for.
type service struct {
	contextdv1.UnimplementedContextServiceServer
}

func (service) behave(how string) error {
	switch how {
	case "panic":
		panic("the secret value")
	case "fail":
		return errors.New("the secret cause")
	case "broken":
		return &eventlog.UnavailableError{Cause: errors.New("the secret disk")}
	case "stop":
		return apierr.ErrDraining
	case "refuse":
		return &eventlog.InvalidError{Field: "f", Reason: "r"}
	case "none":
		return &eventlog.NotFoundError{Kind: "session", Name: how}
	default:
		return nil
	}
}

func (s service) GetSession(_ context.Context, r *contextdv1.GetSessionRequest) (*contextdv1.GetSessionResponse, error) {
	return &contextdv1.GetSessionResponse{}, s.behave(r.GetSessionId())
}

func (s service) ReadEvents(r *contextdv1.ReadEventsRequest, _ grpc.ServerStreamingServer[contextdv1.ReadEventsResponse]) error {
	return s.behave(r.GetSessionId())
}

func (s service) AppendEventStream(stream grpc.BidiStreamingServer[contextdv1.AppendEventStreamRequest, contextdv1.AppendEventStreamResponse]) error {
	r, err := stream.Recv()
	if err != nil {
		return err
	}
	return s.behave(r.GetAppend().GetSessionId())
}

// journal is a log that several goroutines write.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

// roomy are bounds that no test reaches by accident.
func roomy() transport.Bounds {
	budget := func() *memory.Budget { return memory.NewBudget("request_memory", 64<<20, time.Minute) }
	return transport.Bounds{
		Calls: transport.Calls{Max: 100, MaxPerClient: 100}, SmallRequests: budget(), LargeRequests: budget(), DecodedRequests: budget(), Answers: budget(),
		ReceiveTimeout: time.Minute, SendTimeout: time.Minute,
	}
}

func serve(t *testing.T, log io.Writer, unavailable func(), change ...func(*transport.Options)) contextdv1.ContextServiceClient {
	t.Helper()
	o := transport.Options{
		Logger:          slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		MaxMessageBytes: 1 << 20, MaxStreams: 10, Unavailable: unavailable, Bounds: roomy(), ConnectionIdle: time.Minute,
	}
	for _, c := range change {
		c(&o)
	}
	g, err := transport.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	contextdv1.RegisterContextServiceServer(g, service{})
	l := bufconn.Listen(1 << 16)
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	conn, err := grpc.NewClient("passthrough:///x", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		g.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return contextdv1.NewContextServiceClient(conn)
}

// spansOfLines collects the spans that lines of a log are written in.
type spansOfLines struct {
	slog.Handler
	mu *sync.Mutex
	of map[trace.SpanID]bool
}

func (h spansOfLines) Handle(ctx context.Context, r slog.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.of[trace.SpanContextFromContext(ctx).SpanID()] = true
	return h.Handler.Handle(ctx, r)
}

// The span of a call says which session it is about, and the call's line of the log is
// written in it.
func TestCallsNameTheirSession(t *testing.T) {
	lines := spansOfLines{slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}), &sync.Mutex{}, map[trace.SpanID]bool{}}
	spans := tracetest.NewSpanRecorder()
	handler := otelgrpc.NewServerHandler(otelgrpc.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))))
	client := serve(t, io.Discard, nil, func(o *transport.Options) { o.Telemetry, o.Logger = handler, slog.New(lines) })
	if _, err := client.GetSession(t.Context(), &contextdv1.GetSessionRequest{SessionId: "one"}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.AppendEvents(t.Context(), &contextdv1.AppendEventsRequest{SessionId: "three", Events: []*contextdv1.Event{{Kind: &contextdv1.Event_Custom{Custom: &contextdv1.CustomEvent{Type: "x"}}}}}); status.Code(err) != codes.Unimplemented {
		t.Fatal(err)
	}
	stream, err := client.ReadEvents(t.Context(), &contextdv1.ReadEventsRequest{SessionId: "two"})
	if err == nil {
		_, err = stream.Recv()
	}
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if err := appended(t.Context(), client, "four"); err != nil {
		t.Fatal(err)
	}
	lines.mu.Lock()
	defer lines.mu.Unlock()
	of := map[string]bool{}
	for _, span := range spans.Started() {
		if !lines.of[span.SpanContext().SpanID()] {
			t.Errorf("no line of the log is of the span %s", span.Name())
		}
		for _, a := range span.Attributes() {
			of[string(a.Key)+"="+a.Value.String()] = true
		}
	}
	if !of["contextd.session.id=one"] || !of["contextd.session.id=two"] || !of["contextd.session.id=three"] || !of["contextd.session.id=four"] {
		t.Errorf("the spans of calls have %v", of)
	}
}

// appended makes a stream of one append, and returns how it ended.
func appended(ctx context.Context, c contextdv1.ContextServiceClient, session string) error {
	stream, err := c.AppendEventStream(ctx)
	if err != nil {
		return err
	}
	_ = stream.Send(&contextdv1.AppendEventStreamRequest{Append: &contextdv1.AppendEventsRequest{
		SessionId: session, Events: []*contextdv1.Event{{Kind: &contextdv1.Event_Custom{Custom: &contextdv1.CustomEvent{Type: "x"}}}},
	}})
	if _, err = stream.Recv(); errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// TestChain calls in every way, unary and streaming: the client learns what it
// may, the log the rest, and the server goes on.
func TestChain(t *testing.T) {
	calls := map[string]func(contextdv1.ContextServiceClient, context.Context, string) error{
		"unary": func(c contextdv1.ContextServiceClient, ctx context.Context, how string) error {
			_, err := c.GetSession(ctx, &contextdv1.GetSessionRequest{SessionId: how})
			return err
		},
		"stream": func(c contextdv1.ContextServiceClient, ctx context.Context, how string) error {
			stream, err := c.ReadEvents(ctx, &contextdv1.ReadEventsRequest{SessionId: how})
			if err != nil {
				return err
			}
			if _, err = stream.Recv(); errors.Is(err, io.EOF) {
				return nil
			}
			return err
		},
		"stream of appends": func(c contextdv1.ContextServiceClient, ctx context.Context, how string) error {
			return appended(ctx, c, how)
		},
	}
	tests := map[string]struct {
		code   codes.Code
		logged string
	}{
		"ok":     {codes.OK, "level=DEBUG"},
		"panic":  {codes.Internal, "the secret value"},
		"fail":   {codes.Internal, "the secret cause"},
		"broken": {codes.Unavailable, "the secret disk"},
		"stop":   {codes.Unavailable, "level=DEBUG"},
		"refuse": {codes.InvalidArgument, "level=WARN"},
		"none":   {codes.NotFound, "level=DEBUG"},
		"":       {codes.InvalidArgument, "level=WARN"},
	}
	for kind, call := range calls {
		for how, test := range tests {
			t.Run(kind+" "+how, func(t *testing.T) {
				var log journal
				woken := make(chan struct{}, 1)
				client := serve(t, &log, func() { woken <- struct{}{} })
				err := call(client, t.Context(), how)
				if status.Code(err) != test.code || err != nil && strings.Contains(err.Error(), "secret") {
					t.Errorf("the client gets %v; want %v and no secret", err, test.code)
				}
				if err := call(client, t.Context(), "ok"); err != nil {
					t.Errorf("the next call: %v", err)
				}
				if got := log.String(); !strings.Contains(got, test.logged) {
					t.Errorf("the log lacks %q:\n%s", test.logged, got)
				}
				if test.logged == "level=DEBUG" && strings.Contains(log.String(), "level=WARN") {
					t.Errorf("the log warns:\n%s", log.String())
				}
				if how != "" && !strings.Contains(log.String(), "session_id="+how+" ") {
					t.Errorf("the log lacks the session:\n%s", log.String())
				}
				if how == "panic" && !strings.Contains(log.String(), "transport_test.go") {
					t.Error("the log lacks the stack")
				}
				if (len(woken) > 0) != (how == "broken") {
					t.Errorf("notified of a failed store: %t", len(woken) > 0)
				}
			})
		}
	}
}
