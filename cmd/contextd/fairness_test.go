package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/cmd/contextd/internal/auth"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// attackers is how many hostile clients run next to a well-behaved one.
const attackers = 64

// slowdown is how many times longer the well-behaved client may wait than without them.
const slowdown = 10

// hostile is a client that attacks without pause.
type hostile struct {
	t       *testing.T
	p       *process
	name    string
	conn    *grpc.ClientConn
	context contextdv1.ContextServiceClient
	session int // the size of a large session, in bytes
}

var worst = []func(context.Context, hostile){
	floodWithPolicies, assembleInEveryFormat, readNothing, importWithoutEnd, assembleColdSessions, floodWithCalls, watchAndHook, compactAndFork,
}

// TestFairness runs 64 hostile clients, each with an attack that the API allows. Another client's calls must
// succeed and, when run in full, take at most ten times as long as without attackers.
func TestFairness(t *testing.T) {
	length, session := 10*time.Second, 1<<20
	if inFull() {
		length, session = time.Minute, 6<<20
	} else if testing.Short() {
		t.Skip("SKIPPED: -short leaves out attacks on the daemon, which take minutes")
	}
	dir := t.TempDir()
	var entries []auth.TokenEntry
	var tokens []string
	for i := range attackers {
		token, entry, err := auth.NewToken(fmt.Sprintf("attacker-%d", i), "")
		if err != nil {
			t.Fatal(err)
		}
		entries, tokens = append(entries, entry), append(tokens, token)
	}
	file, err := yaml.Marshal(entries)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "tokens.yaml"), file, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(build(t), "serve", "--listen=", "--log-level=error", "--auth-tokens="+filepath.Join(dir, "tokens.yaml"),
		"--import-memory="+manifestFlag(t, "--import-memory="), "--send-timeout=15s", "--receive-timeout=15s")
	cmd.Env = append(os.Environ(), "GOMEMLIMIT="+heapLimit)
	p := spawn(t, cmd)
	b := newBehaved(t, p)
	b.run(5 * time.Second) // warm up, so that one-time work is not measured
	alone := b.run(length)

	// The attackers run in a process of lower priority, since this test is about the daemon's own sharing of
	// the processor.
	attack := exec.Command("nice", "-n", "19", os.Args[0], "-test.run=^TestAttackers$", "-test.timeout=30m")
	attack.Env = append(os.Environ(), "ATTACK_SOCKET="+p.socket, "ATTACK_TOKENS="+strings.Join(tokens, ","), fmt.Sprintf("ATTACK_SESSION=%d", session))
	begun := &lines{}
	attack.Stdout, attack.Stderr = begun, begun
	if err := attack.Start(); err != nil {
		t.Fatal(err)
	}
	var failed error
	ended := make(chan struct{})
	go func() {
		failed = attack.Wait()
		close(ended)
	}()
	defer func() {
		_ = attack.Process.Kill()
		<-ended
	}()
	for deadline := time.Now().Add(5 * time.Minute); !strings.Contains(begun.String(), "attacking"); {
		b.call() // keep the client active while they set up
		if time.Now().After(deadline) {
			t.Fatalf("the attackers do not begin\n%s", begun)
		}
	}
	attacked := b.run(length)
	select {
	case <-ended:
		t.Fatalf("the attackers have ended: %v\n%s", failed, begun)
	default:
	}
	for _, of := range []string{"append", "assemble"} {
		before, now := quantile(alone[of], .99), quantile(attacked[of], .99)
		t.Logf("%-8s  alone p50 %8s p99 %8s; under attack p50 %8s p99 %8s of %d: %.1f times",
			of, quantile(alone[of], .5), before, quantile(attacked[of], .5), now, len(attacked[of]), float64(now)/float64(before))
		if inFull() && now > slowdown*before {
			t.Errorf("%s: a client that behaves waits %s instead of %s", of, now, before)
		}
	}
	peak := p.peak(t)
	t.Logf("%d MiB at most", peak>>20)
	if peak > podMemory {
		t.Errorf("it took %d MiB; the pod has %d", peak>>20, podMemory>>20)
	}
}

// behaved is a well-behaved client: like an agent it appends, assembles a context, and pauses.
type behaved struct {
	t      *testing.T
	client contextdv1.ContextServiceClient
	took   map[string][]time.Duration
}

func newBehaved(t *testing.T, p *process) *behaved {
	b := &behaved{t: t, client: contextdv1.NewContextServiceClient(p.conn)}
	if _, err := b.client.CreateSession(t.Context(), &contextdv1.CreateSessionRequest{SessionId: "behaved"}); err != nil {
		t.Fatal(err)
	}
	return b
}

// turnTime is the time of a turn of a fast agent.
const turnTime = 100 * time.Millisecond

func (b *behaved) run(length time.Duration) map[string][]time.Duration {
	b.t.Helper()
	b.took = map[string][]time.Duration{}
	for deadline := time.Now().Add(length); time.Now().Before(deadline); {
		b.call()
	}
	return b.took
}

func (b *behaved) call() {
	b.t.Helper()
	tick := time.NewTimer(turnTime)
	defer tick.Stop()
	for of, call := range map[string]func() error{
		"append": func() error {
			_, err := b.client.AppendEvents(b.t.Context(), user("behaved", words(1000)))
			return err
		},
		"assemble": func() error {
			_, err := assemble(b.t.Context(), b.client, &contextdv1.AssembleContextRequest{
				SessionId: "behaved", Budget: &contextdv1.Budget{MaxTokens: 16_000},
			})
			return err
		},
	} {
		began := time.Now()
		if err := call(); err != nil && !strings.Contains(err.Error(), "is empty") {
			b.t.Errorf("%s after %s: %v", of, time.Since(began), err)
		}
		if b.took != nil {
			b.took[of] = append(b.took[of], time.Since(began))
		}
	}
	<-tick.C
}

func quantile(all []time.Duration, q float64) time.Duration {
	slices.Sort(all)
	return all[int(q*float64(len(all)-1))].Round(10 * time.Microsecond)
}

// TestAttackers is run in the attackers' process.
func TestAttackers(t *testing.T) {
	tokens := strings.Split(os.Getenv("ATTACK_TOKENS"), ",")
	if len(tokens) != attackers {
		t.Skip("SKIPPED: TestFairness runs it")
	}
	var session int
	if _, err := fmt.Sscan(os.Getenv("ATTACK_SESSION"), &session); err != nil {
		t.Fatal(err)
	}
	p := &process{socket: os.Getenv("ATTACK_SOCKET"), log: &lines{}}
	var ready, all sync.WaitGroup
	for i, token := range tokens {
		ready.Add(1)
		all.Go(func() {
			ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
			conn := p.dial(t)
			h := hostile{t, p, fmt.Sprintf("h%d", i), conn, contextdv1.NewContextServiceClient(conn), session}
			for n := range 3 { // some calls may be asked to try again
				h.fill(ctx, fmt.Sprintf("%s-%d", h.name, n))
			}
			ready.Done()
			for ctx.Err() == nil {
				worst[i%len(worst)](ctx, h)
			}
		})
	}
	ready.Wait()
	fmt.Println("attacking")
	all.Wait()
}

// fill appends a large session.
func (h hostile) fill(ctx context.Context, session string) {
	for done := 0; done < h.session; {
		req := &contextdv1.AppendEventsRequest{SessionId: session}
		for range 8 {
			req.Events = append(req.Events, said(words(32<<10)))
		}
		if _, err := h.context.AppendEvents(ctx, req); err == nil {
			done += 256 << 10
		}
	}
}

// everything requests a context of the whole log.
func (h hostile) everything(n int) *contextdv1.AssembleContextRequest {
	return &contextdv1.AssembleContextRequest{
		SessionId: fmt.Sprintf("%s-%d", h.name, n%3), Preview: n%2 == 0, Budget: &contextdv1.Budget{MaxTokens: 900_000_000},
	}
}

func floodWithPolicies(ctx context.Context, h hostile) {
	at(8, func(i int) {
		policy := &contextdv1.ProjectionPolicy{Policy: "reachability_gc"}
		for range 18 {
			policy.Roots = append(policy.Roots, words(60<<10))
		}
		req := h.everything(i)
		req.Policy = &contextdv1.Policy{Projection: policy}
		_, _ = assemble(ctx, h.context, req)
	})
}

func assembleInEveryFormat(ctx context.Context, h hostile) {
	at(4, func(i int) {
		for format := range contextdv1.Format_name {
			for _, tokenizer := range []string{"o200k_base", "cl100k_base", "heuristic"} {
				req := h.everything(i)
				req.Format, req.Budget.Tokenizer = contextdv1.Format(format), tokenizer
				_, _ = assemble(ctx, h.context, req)
			}
		}
	})
}

// readNothing requests contexts and announces requests, but neither reads the answers nor completes the
// requests.
func readNothing(ctx context.Context, h hostile) {
	body, err := proto.Marshal(h.everything(0))
	if err != nil {
		h.t.Fatal(err)
	}
	answer := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body))), body...)
	announce := make([]byte, 60<<10)
	binary.BigEndian.PutUint32(announce[1:], 36<<20)
	token := metadata.ValueFromIncomingContext(ctx, "authorization")
	if out, ok := metadata.FromOutgoingContext(ctx); ok {
		token = out.Get("authorization")
	}
	at(4, func(i int) {
		r := h.p.dialRaw(h.t)
		defer func() { _ = r.Close() }()
		for stream := uint32(1); stream < 40; stream += 2 {
			method, data := "/contextd.v1.ContextService/AssembleContext", answer
			if i%2 == 0 {
				method, data = "/contextd.v1.ContextService/AppendEvents", announce
			}
			if r.call(stream, method, [2]string{"authorization", token[0]}) != nil {
				return
			}
			r.send(stream, data, 16<<10)
		}
		select {
		case <-time.After(20 * time.Second):
		case <-ctx.Done():
		}
	})
}

func importWithoutEnd(ctx context.Context, h hostile) {
	at(4, func(i int) {
		stream, err := contextdv1.NewTranscriptServiceClient(h.conn).ImportTranscript(ctx)
		if err != nil {
			return
		}
		line := `{"type":"user","uuid":"%d","message":{"role":"user","content":"` + words(2000)[:1900] + `"}}` + "\n"
		line = strings.ReplaceAll(line, "over it\n", "over it ")
		send := func(req *contextdv1.ImportTranscriptRequest) {
			if err == nil {
				err = stream.Send(req)
			}
		}
		send(&contextdv1.ImportTranscriptRequest{Part: &contextdv1.ImportTranscriptRequest_Header{Header: &contextdv1.ImportHeader{
			SessionId: fmt.Sprintf("%s/import%d-%d", h.name, i, time.Now().UnixNano()), Harness: "claude"}}})
		for n := 0; n < h.session/2000 && err == nil; n += 30 {
			var data []byte
			for j := range 30 {
				data = append(data, strings.Replace(line, "%d", fmt.Sprint(n+j), 1)...)
			}
			send(&contextdv1.ImportTranscriptRequest{Part: &contextdv1.ImportTranscriptRequest_Data{Data: data}})
		}
		_, _ = stream.CloseAndRecv()
	})
}

func assembleColdSessions(ctx context.Context, h hostile) {
	at(6, func(i int) { _, _ = assemble(ctx, h.context, h.everything(i)) })
}

func floodWithCalls(ctx context.Context, h hostile) {
	at(64, func(i int) {
		for n := range 100 {
			if i%2 == 0 {
				_, _ = h.context.AppendEvents(ctx, user(fmt.Sprintf("%s/small%d", h.name, i), fmt.Sprint(n)))
			} else {
				_, _ = h.context.CountTokens(ctx, &contextdv1.CountTokensRequest{Text: words(60 << 10)})
			}
		}
	})
}

func watchAndHook(ctx context.Context, h hostile) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	compaction := contextdv1.NewCompactionServiceClient(h.conn)
	var names []string
	for i := range 1000 {
		names = append(names, fmt.Sprintf("%0250d", i))
	}
	at(100, func(int) {
		watch, err := compaction.WatchLifecycle(ctx, &contextdv1.WatchLifecycleRequest{SessionIds: names})
		for err == nil {
			_, err = watch.Recv()
		}
	})
	<-ctx.Done()
}

func compactAndFork(ctx context.Context, h hostile) {
	compaction := contextdv1.NewCompactionServiceClient(h.conn)
	at(4, func(i int) {
		fork := fmt.Sprintf("%s/fork%d", h.name, i)
		_, _ = h.context.ForkSession(ctx, &contextdv1.ForkSessionRequest{SessionId: h.name + "-0", NewSessionId: fork})
		for _, strategy := range []string{"mask", "summarize", "window"} {
			_, _ = compaction.CompactSession(ctx, &contextdv1.CompactSessionRequest{SessionId: fork, Strategy: strategy, KeepLastTurns: 1})
		}
		_, _ = h.context.DeleteSession(ctx, &contextdv1.DeleteSessionRequest{SessionId: fork})
	})
}
