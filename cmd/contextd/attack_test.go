package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// podMemory is the memory of the container in deploy/kubernetes, heapLimit the limit that the daemon derives
// from it.
const (
	podMemory = 512 << 20
	heapLimit = "410MiB"
)

// memoryAttack is what clients do to exhaust the daemon's memory.
type memoryAttack struct {
	name string
	run  func(t *testing.T, p *process, size attackSize)
}

// attackSize is the size of an attack. The small default finds missing bounds; `make attack` uses sizes that
// are known to have broken daemons.
type attackSize struct {
	clients int // connections, or calls at once
	bytes   int // of a large message
	session int // of a large session
}

var memoryAttacks = []memoryAttack{
	{"unfinished requests", unfinishedRequests},
	{"unfinished requests in small frames", unfinishedInSmallFrames},
	{"slow readers of a large event", slowReaders},
	{"slow readers of a context", slowContexts},
	{"large appends at once", largeAppends},
	{"dense appends at once", denseAppends},
	{"a session of many small events", manyEvents},
	{"large injections at once", largeInjections},
	{"transcripts projected at once", projectedTranscripts},
	{"large policies", largePolicies},
	{"tokenizers and formats", manyFormats},
	{"fingerprints", manyFingerprints},
	{"sessions", manySessions},
	{"watchers, hooks and leases", manyWatchers},
	{"metadata", largeMetadata},
	{"frames of HTTP/2", manyFrames},
}

// TestAttack checks that the real program stays within its pod's memory during each attack, and serves others
// afterwards.
func TestAttack(t *testing.T) {
	size := attackSize{clients: 10, bytes: 15 << 20, session: 4 << 20}
	if inFull() {
		size = attackSize{clients: 100, bytes: 15 << 20, session: 27 << 20}
	} else if testing.Short() {
		t.Skip("SKIPPED: -short leaves out attacks on the daemon, which take minutes")
	}
	binary := build(t)
	for _, a := range memoryAttacks {
		t.Run(a.name, func(t *testing.T) {
			cmd := exec.Command(binary, "serve", "--log-level=error", "--send-timeout=15s", "--receive-timeout=15s",
				"--max-session-events="+manifestFlag(t, "--max-session-events="))
			cmd.Env = append(os.Environ(), "GOMEMLIMIT="+heapLimit)
			p := spawn(t, cmd)
			began := time.Now()
			a.run(t, p, size)
			servesOthers(t, p)
			peak := p.peak(t)
			t.Logf("%-40s %4d MiB at most, %s", a.name, peak>>20, time.Since(began).Round(time.Millisecond))
			if peak > podMemory {
				t.Errorf("it took %d MiB; the pod has %d", peak>>20, podMemory>>20)
			}
		})
	}
}

// servesOthers makes typical calls as a new client.
func servesOthers(t *testing.T, p *process) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn := p.dial(t)
	client := contextdv1.NewContextServiceClient(conn)
	if _, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{}); err != nil {
		t.Errorf("health after the attack: %v\n%s", err, p.log)
	}
	if _, err := client.AppendEvents(ctx, user("another", "hello")); err != nil {
		t.Errorf("an append after the attack: %v\n%s", err, p.log)
	}
	if _, err := assemble(ctx, client, &contextdv1.AssembleContextRequest{SessionId: "another"}); err != nil {
		t.Errorf("a context after the attack: %v\n%s", err, p.log)
	}
}

// at runs n calls of f in parallel and waits for them.
func at(n int, f func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}

func user(session, text string) *contextdv1.AppendEventsRequest {
	return &contextdv1.AppendEventsRequest{SessionId: session, Events: []*contextdv1.Event{said(text)}}
}

func said(text string) *contextdv1.Event {
	return &contextdv1.Event{Kind: &contextdv1.Event_Message{Message: &contextdv1.Message{
		Role: contextdv1.Role_ROLE_USER, Blocks: []*contextdv1.Block{textBlock(text)},
	}}}
}

func textBlock(text string) *contextdv1.Block {
	return &contextdv1.Block{Kind: &contextdv1.Block_Text{Text: &contextdv1.Text{Text: text}}}
}

// words is a text of n bytes.
func words(n int) string {
	return strings.Repeat("the quick brown fox jumps over it\n", n/34+1)[:n]
}

// assemble reads a whole context and returns its size in bytes.
func assemble(ctx context.Context, client contextdv1.ContextServiceClient, req *contextdv1.AssembleContextRequest) (int, error) {
	stream, err := client.AssembleContext(ctx, req)
	if err != nil {
		return 0, err
	}
	for n := 0; ; {
		part, err := stream.Recv()
		if err != nil {
			if n > 0 && err.Error() == "EOF" {
				err = nil
			}
			return n, err
		}
		n += proto.Size(part)
	}
}

// fill appends messages of each bytes, up to bytes in total.
func fill(t *testing.T, p *process, session string, bytes, each int) {
	t.Helper()
	client := contextdv1.NewContextServiceClient(p.conn)
	for done := 0; done < bytes; {
		req := &contextdv1.AppendEventsRequest{SessionId: session}
		for n := 0; n < min(4<<20, bytes-done); n += each {
			req.Events = append(req.Events, said(words(each)))
		}
		done += len(req.GetEvents()) * each
		if _, err := client.AppendEvents(t.Context(), req); err != nil {
			t.Fatalf("%v\n%s", err, p.log)
		}
	}
}

// largeAppends, largeInjections and projectedTranscripts send the largest allowed requests, many in parallel.
// Some may be asked to try again.
func largeAppends(t *testing.T, p *process, size attackSize) {
	text := words(size.bytes)
	at(size.clients, func(i int) {
		_, _ = contextdv1.NewContextServiceClient(p.dial(t)).AppendEvents(t.Context(), user(fmt.Sprintf("s%d", i), text))
	})
}

// denseAppends sends requests that are small on the wire but large in memory: batches of as many events of
// one byte as allowed, and of more events that are empty.
func denseAppends(t *testing.T, p *process, size attackSize) {
	empty := append([]byte("\x0a\x01e"), strings.Repeat("\x12\x00", size.bytes)...)
	framed := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(empty))), empty...)
	at(size.clients, func(i int) {
		r := p.dialRaw(t)
		if err := r.call(1, "/contextd.v1.ContextService/AppendEvents"); err != nil {
			return
		}
		r.send(1, framed, 16<<10)
		<-r.answered
		batch := &contextdv1.AppendEventsRequest{SessionId: fmt.Sprintf("s%d", i), Events: slices.Repeat([]*contextdv1.Event{said("x")}, 10_000)}
		_, _ = contextdv1.NewContextServiceClient(p.dial(t)).AppendEvents(t.Context(), batch)
	})
}

// manyEvents appends as many events to a session as allowed, and reads all of them.
func manyEvents(t *testing.T, p *process, _ attackSize) {
	client := contextdv1.NewContextServiceClient(p.dial(t))
	batch := &contextdv1.AppendEventsRequest{SessionId: "long", Events: slices.Repeat([]*contextdv1.Event{said("x")}, 10_000)}
	var err error
	for range 200 {
		if _, err = client.AppendEvents(t.Context(), batch); err != nil {
			break
		}
	}
	if status.Code(err) != codes.ResourceExhausted {
		t.Fatalf("no limit on the events of a session: %v", err)
	}
	if n, err := assemble(t.Context(), client, &contextdv1.AssembleContextRequest{
		SessionId: "long", Budget: &contextdv1.Budget{MaxTokens: 900_000_000},
	}); err != nil || n == 0 {
		t.Errorf("%d bytes of context, %v", n, err)
	}
}

func largeInjections(t *testing.T, p *process, size attackSize) {
	fill(t, p, "small", 1000, 1000)
	text := words(size.bytes)
	at(size.clients, func(i int) {
		_, _ = assemble(t.Context(), contextdv1.NewContextServiceClient(p.dial(t)), &contextdv1.AssembleContextRequest{
			SessionId: "small", Preview: true, Budget: &contextdv1.Budget{MaxTokens: 900_000_000, InjectionReserve: 400_000_000},
			Injections: []*contextdv1.Injection{{Name: "x", Blocks: []*contextdv1.Block{textBlock(text)}, ReserveTokens: 400_000_000}},
		})
	})
}

func projectedTranscripts(t *testing.T, p *process, size attackSize) {
	text := words(size.bytes)
	at(size.clients, func(int) {
		stream, err := contextdv1.NewContextServiceClient(p.dial(t)).ProjectTranscript(t.Context(), &contextdv1.ProjectTranscriptRequest{
			Events: []*contextdv1.Event{said(text)}, Budget: &contextdv1.Budget{MaxTokens: 900_000_000},
		})
		for err == nil {
			_, err = stream.Recv()
		}
	})
}

// largePolicies creates sessions with the largest allowed policies and with larger ones, lists the sessions
// and uses the policies.
func largePolicies(t *testing.T, p *process, size attackSize) {
	client := contextdv1.NewContextServiceClient(p.conn)
	policy := func(roots int) *contextdv1.Policy {
		p := &contextdv1.ProjectionPolicy{Policy: "reachability_gc"}
		for range roots {
			p.Roots = append(p.Roots, words(60<<10))
		}
		return &contextdv1.Policy{Projection: p}
	}
	if _, err := client.CreateSession(t.Context(), &contextdv1.CreateSessionRequest{SessionId: "over", Policy: policy(450)}); err == nil || !strings.Contains(err.Error(), "max_policy_bytes") {
		t.Errorf("a policy of 27 MiB: %v", err)
	}
	at(4*size.clients, func(i int) {
		id := fmt.Sprintf("s%d", i)
		if _, err := client.CreateSession(t.Context(), &contextdv1.CreateSessionRequest{SessionId: id, Policy: policy(20)}); err != nil {
			return
		}
		_, _ = client.AppendEvents(t.Context(), user(id, "hello"))
		_, _ = assemble(t.Context(), client, &contextdv1.AssembleContextRequest{SessionId: id})
	})
	at(8, func(int) {
		_, _ = client.ListSessions(t.Context(), &contextdv1.ListSessionsRequest{PageSize: 1000})
	})
}

// manyFormats assembles one session for every pair of tokenizer and format.
func manyFormats(t *testing.T, p *process, size attackSize) {
	fill(t, p, "large", size.session, 64<<10)
	client := contextdv1.NewContextServiceClient(p.conn)
	for _, tokenizer := range []string{"o200k_base", "cl100k_base", "heuristic"} {
		for _, format := range []contextdv1.Format{
			contextdv1.Format_FORMAT_UNSPECIFIED, contextdv1.Format_FORMAT_ANTHROPIC, contextdv1.Format_FORMAT_OPENAI_CHAT,
			contextdv1.Format_FORMAT_OPENAI_RESPONSES, contextdv1.Format_FORMAT_GEMINI,
		} {
			if _, err := assemble(t.Context(), client, &contextdv1.AssembleContextRequest{
				SessionId: "large", Format: format, Budget: &contextdv1.Budget{MaxTokens: 900_000_000, Tokenizer: tokenizer},
			}); err != nil {
				t.Errorf("%s %s: %v", tokenizer, format, err)
			}
		}
	}
}

// manyFingerprints assembles one session under many policies, each with a state of its own.
func manyFingerprints(t *testing.T, p *process, size attackSize) {
	fill(t, p, "large", size.session/4, 16<<10)
	client := contextdv1.NewContextServiceClient(p.conn)
	for i := range size.clients {
		if _, err := assemble(t.Context(), client, &contextdv1.AssembleContextRequest{
			SessionId: "large", Budget: &contextdv1.Budget{MaxTokens: 900_000_000 - uint64(i)},
		}); err != nil {
			t.Errorf("policy %d: %v", i, err)
		}
	}
}

// manySessions assembles large sessions, several in parallel.
func manySessions(t *testing.T, p *process, size attackSize) {
	const sessions = 8
	for i := range sessions {
		fill(t, p, fmt.Sprintf("s%d", i), size.session, 64<<10)
	}
	at(size.clients, func(i int) {
		_, _ = assemble(t.Context(), contextdv1.NewContextServiceClient(p.dial(t)), &contextdv1.AssembleContextRequest{
			SessionId: fmt.Sprintf("s%d", i%sessions), Budget: &contextdv1.Budget{MaxTokens: 900_000_000},
		})
	})
}

// manyWatchers keeps as many calls open as allowed, each for many sessions, and reads no answer.
func manyWatchers(t *testing.T, p *process, size attackSize) {
	var names []string
	for i := range 1000 {
		names = append(names, fmt.Sprintf("%0250d", i))
	}
	// The limit on a client's open calls applies to this client too.
	at(min(10*size.clients, 500), func(i int) {
		conn := p.conn
		if i%100 == 0 {
			conn = p.dial(t)
		}
		client := contextdv1.NewCompactionServiceClient(conn)
		switch i % 2 {
		case 0:
			_, _ = client.WatchLifecycle(t.Context(), &contextdv1.WatchLifecycleRequest{SessionIds: names})
		default:
			hooks, err := client.ServeHooks(t.Context())
			if err == nil {
				_ = hooks.Send(&contextdv1.ServeHooksRequest{Part: &contextdv1.ServeHooksRequest_Subscribe{Subscribe: &contextdv1.HookSubscription{SessionIds: names, PreCompact: true}}})
			}
		}
	})
	client := contextdv1.NewContextServiceClient(p.conn)
	for range 50 {
		_, _ = client.AppendEvents(t.Context(), user("watched", words(1000)))
		_, _ = assemble(t.Context(), client, &contextdv1.AssembleContextRequest{SessionId: "watched"})
	}
}

// inFull reports whether long tests run in full, as `make nightly` has them.
func inFull() bool { return os.Getenv("NIGHTLY") != "" }
