package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// TestFaultClients has clients read slowly, send half of a request, fall silent, vanish during calls, and
// flood the real program, all at once. Meanwhile a well-behaved client must be served. Afterwards no
// goroutines or descriptors of the others may remain. All clients are in one process, which is allowed as
// many connections as they need.
func TestFaultClients(t *testing.T) {
	clients, while := 20, time.Second
	if inFull() {
		clients, while = 100, time.Minute
	}
	p := spawnWatched(t, "--send-timeout=2s", "--receive-timeout=2s", "--log-level=error", "--max-calls=64", "--max-client-connections=1024")
	fill(t, p, "large", 8<<20, 8<<20)
	fill(t, p, "small", 100_000, 1000)
	if _, err := assemble(t.Context(), contextdv1.NewContextServiceClient(p.conn), &contextdv1.AssembleContextRequest{SessionId: "small", Preview: true}); err != nil {
		t.Fatal(err)
	}
	before := p.usage(t)

	t.Run("at once", func(t *testing.T) { hostileClients(t, p, clients, while) })
	after := p.settles(t, usage{goroutines: before.goroutines + 5, descriptors: before.descriptors + 3})
	t.Logf("before %v, after %v", before, after)
}

// hostileClients runs hostile clients for a while. Their connections end with the test.
func hostileClients(t *testing.T, p *process, clients int, while time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), while)
	defer cancel()
	var all sync.WaitGroup
	all.Go(func() {
		unread(t, p, clients, "/contextd.v1.ContextService/ReadEvents", &contextdv1.ReadEventsRequest{SessionId: "large"})
	})
	all.Go(func() { unfinished(t, p, attackSize{clients: clients, bytes: 1 << 20}, 16<<10) })
	for i := range clients {
		silent := p.silent(t)
		rng := rand.New(rand.NewPCG(*seed, uint64(i)))
		all.Go(func() {
			for ctx.Err() == nil {
				p.vanish(ctx, rng)
			}
			if !inFull() {
				return // unresponsive clients are only detected after 40 seconds
			}
			if _, err := io.Copy(io.Discard, silent); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the program does not hang up on a client that is silent: %v", err)
			}
		})
		all.Go(func() {
			client := contextdv1.NewContextServiceClient(p.dial(t))
			for ctx.Err() == nil {
				_, _ = client.CountTokens(ctx, &contextdv1.CountTokensRequest{Text: "x"}) // it may be asked to wait
			}
		})
	}
	latencies := p.behave(ctx, t)
	all.Wait()
	slices.Sort(latencies)
	t.Logf("%d clients of each kind, seed %d: %d calls of one that behaves, half within %s, 99%% within %s, all within %s",
		clients, *seed, len(latencies), latencies[len(latencies)/2], latencies[len(latencies)*99/100], latencies[len(latencies)-1])
}

// silent is a client that begins to speak HTTP/2, and then neither sends nor reads.
func (p *process) silent(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("unix", p.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err := http2.NewFramer(conn, nil).WriteSettings(); err != nil {
		t.Fatal(err)
	}
	return conn
}

// vanish is a client that disconnects in the middle of a call.
func (p *process) vanish(ctx context.Context, rng *rand.Rand) {
	conn, err := connectUnix(p.socket)
	if err != nil {
		return
	}
	defer conn.Close()
	client := contextdv1.NewContextServiceClient(conn)
	switch rng.IntN(5) {
	case 0:
		if stream, err := client.AppendEventStream(ctx); err == nil {
			_ = stream.Send(&contextdv1.AppendEventStreamRequest{Append: user(fmt.Sprintf("v%d", rng.IntN(10)), "gone")})
		}
	case 1:
		if stream, err := client.ReadEvents(ctx, &contextdv1.ReadEventsRequest{SessionId: "small", Follow: true}); err == nil {
			_, _ = stream.Recv()
		}
	case 2:
		if stream, err := client.AssembleContext(ctx, &contextdv1.AssembleContextRequest{SessionId: "small", Preview: true}); err == nil {
			_, _ = stream.Header()
		}
	case 3:
		if stream, err := contextdv1.NewTranscriptServiceClient(conn).ImportTranscript(ctx); err == nil {
			_ = stream.Send(&contextdv1.ImportTranscriptRequest{Part: &contextdv1.ImportTranscriptRequest_Header{Header: &contextdv1.ImportHeader{SessionId: "v"}}})
		}
	default:
		if stream, err := contextdv1.NewCompactionServiceClient(conn).WatchLifecycle(ctx, &contextdv1.WatchLifecycleRequest{}); err == nil {
			_, _ = stream.Header()
		}
	}
}

// behave is a client that appends and assembles from time to time, and waits when asked to. It returns the
// durations of its calls.
func (p *process) behave(ctx context.Context, t *testing.T) (took []time.Duration) {
	t.Helper()
	client := contextdv1.NewContextServiceClient(p.dial(t))
	for ctx.Err() == nil {
		for _, call := range []func(context.Context) error{
			func(ctx context.Context) error {
				_, err := client.AppendEvents(ctx, user("own", "hello"))
				return err
			},
			func(ctx context.Context) error {
				_, err := assemble(ctx, client, &contextdv1.AssembleContextRequest{SessionId: "small", Preview: true})
				return err
			},
		} {
			began := time.Now()
			err := call(t.Context())
			for reasonOf(err) == apierr.ReasonBusy {
				pause(t.Context(), 10*time.Millisecond)
				err = call(t.Context())
			}
			if err != nil {
				t.Errorf("a client that behaves got %v\n%s", err, p.log)
				return append(took, 0)
			}
			took = append(took, time.Since(began))
		}
		pause(ctx, 10*time.Millisecond)
	}
	return took
}

// pause waits for something in another process that only time can show.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// spawnWatched starts the program with metrics and profiles, so that usage can read them.
func spawnWatched(t *testing.T, args ...string) *process {
	t.Helper()
	metrics := freeAddress(t)
	args = append([]string{"serve", "--listen=", "--metrics-listen=" + metrics, "--pprof", `--default-budget={tokenizer: heuristic}`}, args...)
	p := spawn(t, exec.Command(build(t), args...))
	p.metrics = metrics
	return p
}

func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// usage is the resources that a process holds.
type usage struct {
	goroutines, descriptors int
	resident                uint64 // bytes
}

func (u usage) String() string {
	return fmt.Sprintf("%d goroutines, %d descriptors, %d MiB", u.goroutines, u.descriptors, u.resident>>20)
}

// usage reads the program's profiles and /proc.
func (p *process) usage(t testing.TB) (u usage) {
	t.Helper()
	resp, err := http.Get("http://" + p.metrics + "/debug/pprof/goroutine?debug=1")
	if err != nil {
		t.Fatalf("%v\n%s", err, p.log)
	}
	defer resp.Body.Close()
	if _, err := fmt.Fscanf(resp.Body, "goroutine profile: total %d\n", &u.goroutines); err != nil {
		t.Fatal(err)
	}
	descriptors, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
	if err != nil {
		t.Skipf("SKIPPED: no /proc to count the descriptors of a process in; this needs Linux: %v", err)
	}
	u.descriptors, u.resident = len(descriptors), p.statusOf(t, "VmRSS:")
	return u
}

// settles waits until the program holds no more than most.
func (p *process) settles(t testing.TB, most usage) usage {
	t.Helper()
	http.DefaultClient.CloseIdleConnections()
	for end := time.Now().Add(time.Minute); ; pause(t.Context(), 200*time.Millisecond) {
		now := p.usage(t)
		if now.goroutines <= most.goroutines && now.descriptors <= most.descriptors {
			return now
		}
		if time.Now().After(end) {
			t.Errorf("a minute later it holds %v", now)
			return now
		}
	}
}
