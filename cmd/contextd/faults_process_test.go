package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/contextd/contextd/cmd/contextd/internal/cli"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// TestFaultStoppedUnderLoad stops the real program during 200 calls. It must stop in order and in time, every
// caller must get an answer or an error, and acknowledged events must be stored.
func TestFaultStoppedUnderLoad(t *testing.T) {
	const (
		calls   = 200
		timeout = 10 * time.Second
	)
	binary := build(t)
	dir := filepath.Join(t.TempDir(), "data")
	p := spawn(t, exec.Command(binary, append(faultArgs(dir), "--log-level=error", "--shutdown-timeout="+timeout.String())...))
	know := newKnowledge()
	var acks atomic.Int64
	enough := make(chan struct{})
	acked := func() {
		if acks.Add(1) == 5*calls {
			close(enough)
		}
	}
	var conns []*grpc.ClientConn
	for range 10 {
		conns = append(conns, p.dial(t))
	}
	if _, err := contextdv1.NewContextServiceClient(p.conn).CreateSession(t.Context(), &contextdv1.CreateSessionRequest{SessionId: "s0"}); err != nil {
		t.Fatal(err)
	}
	var clients sync.WaitGroup
	for i := range calls {
		conn := conns[i%len(conns)]
		w := &killWriter{
			client: contextdv1.NewContextServiceClient(conn), know: know, acked: acked, session: fmt.Sprintf("s%d", i%20),
			name: fmt.Sprintf("c%d", i), rng: rand.New(rand.NewPCG(*seed, uint64(i))),
		}
		clients.Go(func() {
			switch i % 4 {
			case 0:
				w.stream(t)
			case 1:
				w.unary(t)
			case 2:
				stream, err := w.client.ReadEvents(context.Background(), &contextdv1.ReadEventsRequest{SessionId: "s0", Follow: true})
				for err == nil {
					_, err = stream.Recv()
				}
				expectGone(t, err)
			default:
				stream, err := contextdv1.NewCompactionServiceClient(conn).WatchLifecycle(context.Background(), &contextdv1.WatchLifecycleRequest{})
				for err == nil {
					_, err = stream.Recv()
				}
				expectGone(t, err)
			}
		})
	}
	<-enough
	began := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(t); code != cli.ExitOK {
		t.Errorf("it ended with %d\n%s", code, p.log)
	}
	took := time.Since(began)
	clients.Wait()
	if took > timeout {
		t.Errorf("it took %s", took)
	}
	again := spawn(t, exec.Command(binary, faultArgs(dir)...))
	know.verify(t, contextdv1.NewContextServiceClient(again.conn))
	t.Logf("stopped %d calls in %s; %d events had been acknowledged", calls, took.Round(time.Millisecond), know.acknowledged())
}

// TestFaultSecondDaemon starts a second daemon on the same directory. It must refuse and name the first, and
// the first must not be disturbed.
func TestFaultSecondDaemon(t *testing.T) {
	binary := build(t)
	dir := filepath.Join(t.TempDir(), "data")
	first := spawn(t, exec.Command(binary, faultArgs(dir)...))
	client := contextdv1.NewContextServiceClient(first.conn)
	if _, err := client.AppendEvents(t.Context(), user("s", "before")); err != nil {
		t.Fatal(err)
	}
	serve := append(faultArgs(dir), "--unix-socket="+filepath.Join(t.TempDir(), "c.sock"))
	for _, args := range [][]string{serve, {"verify", "--embedded", dir}, {"append", "s", "--embedded", dir}} {
		cmd := exec.Command(binary, args...)
		cmd.Stdin = strings.NewReader(`{"message":{"role":"ROLE_USER","blocks":[{"text":{"text":"x"}}]}}`)
		out, err := cmd.CombinedOutput()
		if want := fmt.Sprintf("is in use by process %d on ", first.cmd.Process.Pid); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v\n%s", args[0], err, out)
		}
	}
	if _, err := client.AppendEvents(t.Context(), user("s", "after")); err != nil {
		t.Error(err)
	}
	if events := readAll(t, client, "s"); len(events) != 2 {
		t.Errorf("there are %d events", len(events))
	}
}

// TestFaultReload makes the real program read an invalid file on SIGHUP. It must report the error and keep
// its policies.
func TestFaultReload(t *testing.T) {
	file := filepath.Join(t.TempDir(), "contextd.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const whole = "policies:\n  own:\n    tool_results: {default: {turns: 4}}\n"
	write(whole)
	p := spawn(t, exec.Command(build(t), append(faultArgs(filepath.Join(t.TempDir(), "data")), "--config="+file)...))
	client := contextdv1.NewContextServiceClient(p.conn)
	if _, err := client.AppendEvents(t.Context(), user("s", "hello")); err != nil {
		t.Fatal(err)
	}
	for broken, says := range map[string]string{
		"policies: [":                  "contextd.yaml",
		"policies:\n  own: {x: 1}\n":   "unknown field",
		"no_such_setting: 1\n" + whole: "no_such_setting",
		whole + "max_streams: many\n":  "max_streams",
		"\x00\xff":                     "contextd.yaml",
	} {
		write(broken)
		before := len(p.log.String())
		if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		for !strings.Contains(p.log.String()[before:], "level=ERROR") {
			select {
			case <-p.ended:
				t.Fatalf("%q: it ended\n%s", broken, p.log)
			case <-time.After(10 * time.Millisecond):
			}
		}
		if said := p.log.String()[before:]; !strings.Contains(said, says) {
			t.Errorf("%q: it says %s", broken, said)
		}
		if _, err := assemble(t.Context(), client, &contextdv1.AssembleContextRequest{SessionId: "s", Policy: &contextdv1.Policy{Name: "own"}}); err != nil {
			t.Errorf("%q: %v", broken, err)
		}
	}
}
