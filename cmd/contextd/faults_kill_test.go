package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

const (
	killRounds   = 100
	killClients  = 12
	killSessions = 4
	// maxAcks is the largest number of acknowledgements after which a round ends.
	maxAcks = 200
)

// TestFaultKilledUnderLoad kills the real program with SIGKILL at random moments while clients append,
// assemble, compact, summarise, fork, import, delete and back up. After every restart, each acknowledged
// event must be at the seq that was acknowledged, batches must be complete or absent, seqs without gaps, and
// everything else that was acknowledged present.
func TestFaultKilledUnderLoad(t *testing.T) {
	rounds := killRounds
	if !inFull() {
		rounds = 6
	}
	t.Logf("seed %d", *seed)
	rng := rand.New(rand.NewPCG(*seed, 0))
	binary := build(t)
	dir := t.TempDir()
	know := newKnowledge()
	for round := range rounds {
		d := startDaemon(t, binary, dir)
		know.verify(t, d.client)
		runLoad(t, d, know, round, rng.Uint64(), int64(rng.IntN(maxAcks)))
		if t.Failed() {
			return
		}
	}
	d := startDaemon(t, binary, dir)
	know.verify(t, d.client)
	d.stop(t)
	t.Logf("%d kills, %d events acknowledged, and %s", rounds, know.acknowledged(), know.mixed.String())
	if out, err := exec.Command(binary, "verify", "--embedded", filepath.Join(dir, "data")).CombinedOutput(); err != nil {
		t.Errorf("verify: %v\n%s", err, out)
	}
}

// runLoad runs clients until acks answers have arrived, and kills the daemon at that moment.
func runLoad(t *testing.T, d *killable, know *knowledge, round int, seed uint64, acks int64) {
	t.Helper()
	var left atomic.Int64
	left.Store(acks)
	now := make(chan struct{})
	acked := func() {
		if left.Add(-1) == 0 {
			close(now)
		}
	}
	if acks == 0 {
		close(now)
	}
	var clients sync.WaitGroup
	var own [killClients][]string
	for i, session := range know.there() {
		own[i%killClients] = append(own[i%killClients], session)
	}
	for w := range killClients {
		rng := rand.New(rand.NewPCG(seed, uint64(w)))
		name := fmt.Sprintf("w%d-r%d", w, round)
		writer := &killWriter{client: d.client, know: know, acked: acked, session: fmt.Sprintf("s%d", w%killSessions), name: name, rng: rng}
		mixer := &killMixer{killable: d, know: know, acked: acked, name: name, rng: rng, own: own[w], backups: t.TempDir()}
		clients.Go(func() {
			switch {
			// Appends over streams are so much faster than other calls that few of these would happen next to
			// them.
			case round%2 == 0 && w%2 == 0:
				writer.stream(t)
			case w == 1:
				writer.unary(t)
			default:
				mixer.run(t)
			}
		})
	}
	<-now
	d.kill(t)
	clients.Wait()
	d.close(t)
}

// killable is a daemon in a process of its own.
type killable struct {
	cmd    *exec.Cmd
	socket string
	conn   *grpc.ClientConn
	client contextdv1.ContextServiceClient
}

func startDaemon(t *testing.T, binary, dir string) *killable {
	t.Helper()
	socket := filepath.Join(dir, "c.sock")
	cmd := exec.Command(binary, append(faultArgs(filepath.Join(dir, "data")), "--unix-socket="+socket, "--log-level=error")...)
	cmd.Stderr = t.Output()
	cmd.Env = os.Environ()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	d := &killable{cmd: cmd, socket: socket, conn: conn, client: contextdv1.NewContextServiceClient(conn)}
	if err := awaitReady(t.Context(), conn); err != nil {
		d.kill(t)
		t.Fatalf("the daemon does not become ready: %v", err)
	}
	return d
}

// faultArgs serve a directory with small tables, which are rewritten often, and without a tokenizer to load.
func faultArgs(dir string) []string {
	return []string{"serve", "--listen=", "--data-dir=" + dir, "--disk-reserve=2MiB", "--disk-low=0", `--default-budget={tokenizer: heuristic}`, "--log-level=warn"}
}

// awaitReady waits at most a minute until a daemon reports that it is ready.
func awaitReady(ctx context.Context, conn *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	watch, err := grpc_health_v1.NewHealthClient(conn).Watch(ctx, &grpc_health_v1.HealthCheckRequest{}, grpc.WaitForReady(true))
	for err == nil {
		var resp *grpc_health_v1.HealthCheckResponse
		if resp, err = watch.Recv(); err == nil && resp.GetStatus() == grpc_health_v1.HealthCheckResponse_SERVING {
			return nil
		}
	}
	return err
}

func (d *killable) kill(t *testing.T) {
	t.Helper()
	if err := d.cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	if err := d.cmd.Wait(); err == nil {
		t.Error("a killed daemon exited with 0")
	}
}

func (d *killable) stop(t *testing.T) {
	t.Helper()
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := d.cmd.Wait(); err != nil {
		t.Errorf("the daemon did not stop in order: %v", err)
	}
	d.close(t)
}

func (d *killable) close(t *testing.T) {
	t.Helper()
	if err := d.conn.Close(); err != nil {
		t.Error(err)
	}
}
