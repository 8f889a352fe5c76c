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

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

const (
	killRounds  = 100
	killWriters = 8
	// maxAcks is before how many acknowledgements a round is over at the latest.
	maxAcks = 300
)

// TestKilledUnderLoad kills the real binary with SIGKILL at random moments while
// clients append, and finds after every restart each acknowledged event where it
// was acknowledged, every batch whole or not at all, and seqs without a gap.
func TestKilledUnderLoad(t *testing.T) {
	rounds := killRounds
	if !inFull() {
		rounds = 6
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
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
	t.Logf("%d kills, %d events acknowledged", rounds, know.acknowledged())
	verifyChains(t, filepath.Join(dir, "data"))
}

// runLoad lets writers append until acks answers have come, and kills the daemon
// at that moment.
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
	var writers sync.WaitGroup
	for w := range killWriters {
		writer := &killWriter{
			client: d.client, know: know, acked: acked,
			session: fmt.Sprintf("s%d", w/2), name: fmt.Sprintf("w%d-r%d", w, round),
			rng: rand.New(rand.NewPCG(seed, uint64(w))),
		}
		writers.Go(func() {
			if w%2 == 0 {
				writer.unary(t)
			} else {
				writer.stream(t)
			}
		})
	}
	<-now
	d.kill(t)
	writers.Wait()
	d.close(t)
}

// verifyChains checks the hash chain of every session in the closed directory.
func verifyChains(t *testing.T, dir string) {
	t.Helper()
	store, err := disklog.Open(dir, disklog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	sessions, err := store.ListSessions(t.Context(), eventlog.SessionQuery{})
	if err != nil {
		t.Fatal(err)
	}
	if len(sessions) != killWriters/2 {
		t.Errorf("there are %d sessions", len(sessions))
	}
	for _, s := range sessions {
		if err := store.Verify(t.Context(), s.ID); err != nil {
			t.Errorf("session %s: %v", s.ID, err)
		}
	}
}

// build builds the program as it is shipped.
func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "contextd")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return binary
}

// killable is the daemon as a process.
type killable struct {
	cmd    *exec.Cmd
	conn   *grpc.ClientConn
	client contextdv1.ContextServiceClient
}

func startDaemon(t *testing.T, binary, dir string) *killable {
	t.Helper()
	socket := filepath.Join(dir, "c.sock")
	cmd := exec.Command(binary, "serve", "--listen=", "--unix-socket="+socket, "--data-dir="+filepath.Join(dir, "data"), "--log-level=warn")
	cmd.Stderr = t.Output()
	cmd.Env = os.Environ()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	d := &killable{cmd: cmd, conn: conn, client: contextdv1.NewContextServiceClient(conn)}
	if err := awaitReady(conn); err != nil {
		d.kill(t)
		t.Fatalf("the daemon does not become ready: %v", err)
	}
	return d
}

// awaitReady waits until a daemon reports to be ready.
func awaitReady(conn *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
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
