package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// built is where build put the program.
var built struct {
	sync.Once
	dir string
	out []byte
	err error
}

// build builds the program as it is released, once for all tests.
func build(t testing.TB) string {
	t.Helper()
	built.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "contextd-built-*"); built.err == nil { //nolint:usetesting // outlives the test
			compile := exec.Command("go", "build", "-o", built.dir, ".")
			compile.Env = append(os.Environ(), "CGO_ENABLED=0") // with it the store's memory is not Go's
			built.out, built.err = compile.CombinedOutput()
		}
	})
	if built.err != nil {
		t.Fatalf("go build: %v\n%s", built.err, built.out)
	}
	return filepath.Join(built.dir, "contextd")
}

// tests removes the built program at the end.
type tests struct{ *testing.M }

func (m tests) Run() int {
	code := m.M.Run()
	if err := os.RemoveAll(built.dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	return code
}

// process is the real program, serving on a unix socket.
type process struct {
	cmd    *exec.Cmd
	socket string
	log    *lines
	ended  chan struct{}
	conn   *grpc.ClientConn
	// metrics is the address of the program's metrics and profiles; empty if they are off.
	metrics string
}

// lines is a log that may be written and read concurrently.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// spawn starts the program and waits until it is ready. It is killed at the end of the test if it still runs.
func spawn(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	p := launch(t, cmd)
	if !p.ready(t) {
		t.Fatalf("the daemon does not become ready\n%s", p.log)
	}
	return p
}

// launch starts the program without waiting; it may refuse to start.
func launch(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	dir := t.TempDir()
	p := &process{cmd: cmd, socket: filepath.Join(dir, "c.sock"), log: &lines{}, ended: make(chan struct{})}
	cmd.Args = append(cmd.Args, "--unix-socket="+p.socket)
	if !slices.ContainsFunc(cmd.Args, func(arg string) bool { return strings.HasPrefix(arg, "--data-dir=") }) {
		cmd.Args = append(cmd.Args, "--data-dir="+filepath.Join(dir, "data"))
	}
	if cmd.Stderr == nil {
		cmd.Stderr = p.log
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = cmd.Wait() // ProcessState has the result
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended already
		<-p.ended
	})
	p.conn = p.dial(t)
	return p
}

// ready waits until the program is ready (true) or has ended (false).
func (p *process) ready(t testing.TB) bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		select {
		case <-p.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	return awaitReady(ctx, p.conn) == nil
}

func (p *process) dial(t testing.TB) *grpc.ClientConn {
	t.Helper()
	return dialUnix(t, p.socket)
}

func connectUnix(socket string) (*grpc.ClientConn, error) {
	return grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30), grpc.MaxCallSendMsgSize(1<<30)))
}

func dialUnix(t testing.TB, socket string) *grpc.ClientConn {
	t.Helper()
	conn, err := connectUnix(socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// wait waits at most a minute for the program's end, and returns its exit code.
func (p *process) wait(t testing.TB) int {
	t.Helper()
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(time.Minute):
		t.Fatalf("the daemon runs still after a minute\n%s", p.log)
		return 0
	}
}

// kill kills the program by SIGKILL.
func (p *process) kill(t testing.TB) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.wait(t)
}

// reasonOf is the stable reason of an error; empty if it did not come from the daemon.
func reasonOf(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			return info.GetReason()
		}
	}
	return ""
}

// copyDir copies a data directory with file modes.
func copyDir(t testing.TB, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v\n%s", err, out)
	}
}
