package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/contextd/contextd/cmd/contextd/internal/cli"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func TestStop(t *testing.T) {
	binary := build(t)
	t.Run("bounded", func(t *testing.T) { stopIsBounded(t, binary) })
	t.Run("unfinished", func(t *testing.T) { stopWithoutAnEnd(t, binary) })
	t.Run("not started", func(t *testing.T) { stopBeforeTheStart(t, binary) })
	t.Run("second signal", func(t *testing.T) { secondSignalEndsAtOnce(t, binary) })
	t.Run("log closed", func(t *testing.T) { logThatNobodyReads(t, binary, true) })
	t.Run("log full", func(t *testing.T) { logThatNobodyReads(t, binary, false) })
}

// stopIsBounded stops the real program while calls of many kinds do not end. Calls that wait for a client
// must be cut off, and the store closed.
func stopIsBounded(t *testing.T, binary string) {
	const timeout = 2 * time.Second
	p := spawn(t, exec.Command(binary, "serve", "--shutdown-timeout="+timeout.String()))
	occupy(t, p)
	began := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(t); code != cli.ExitOK {
		t.Errorf("it ended with %d\n%s", code, p.log)
	}
	if took := time.Since(began); took > timeout+5*time.Second {
		t.Errorf("it took %s", took)
	}
	if log := p.log.String(); !strings.Contains(log, "calls were cut off") || !strings.Contains(log, "ImportTranscript (1, since") {
		t.Errorf("the log does not name what was cut off:\n%s", log)
	}
}

// stopWithoutAnEnd stops the program while it waits for the content of its configuration file, a pipe.
func stopWithoutAnEnd(t *testing.T, binary string) {
	file := filepath.Join(t.TempDir(), "contextd.yaml")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p := spawn(t, exec.Command(binary, "serve", "--store=memory", "--shutdown-timeout=1s", "--config="+file))
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	makePipe(t, file)
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	defer terminateAtPipe(t, p, file)()
	if code := p.wait(t); code != cli.ExitUnfinished {
		t.Errorf("it ended with %d\n%s", code, p.log)
	}
	if log := p.log.String(); !strings.Contains(log, "ended although not everything had stopped") {
		t.Errorf("the log does not say why:\n%s", log)
	}
}

// stopBeforeTheStart stops the program while it waits for its configuration, before it serves.
func stopBeforeTheStart(t *testing.T, binary string) {
	file := filepath.Join(t.TempDir(), "contextd.yaml")
	makePipe(t, file)
	p := launch(t, exec.Command(binary, "serve", "--store=memory", "--config="+file))
	defer terminateAtPipe(t, p, file)()
	if code := p.wait(t); code != cli.ExitFailure || !strings.Contains(p.log.String(), "interrupted") {
		t.Errorf("it ended with %d\n%s", code, p.log)
	}
}

func makePipe(t *testing.T, path string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "mkfifo", path).CombinedOutput(); err != nil {
		t.Fatalf("mkfifo: %v\n%s", err, out)
	}
}

// secondSignalEndsAtOnce sends a second signal during a stop that would take an hour.
func secondSignalEndsAtOnce(t *testing.T, binary string) {
	p := spawn(t, exec.Command(binary, "serve", "--shutdown-timeout=1h"))
	occupy(t, p)
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for !strings.Contains(p.log.String(), "stopping") {
		select {
		case <-p.ended:
			t.Fatalf("it did not wait\n%s", p.log)
		case <-time.After(10 * time.Millisecond):
		}
	}
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(t); code != cli.ExitAtOnce {
		t.Errorf("it ended with %d", code)
	}
}

// occupy begins a call that does not end on its own.
func occupy(t *testing.T, p *process) {
	t.Helper()
	stuck, err := contextdv1.NewTranscriptServiceClient(p.conn).ImportTranscript(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	header := &contextdv1.ImportTranscriptRequest{Part: &contextdv1.ImportTranscriptRequest_Header{Header: &contextdv1.ImportHeader{SessionId: "s", Harness: "claude"}}}
	if err := stuck.Send(header); err != nil {
		t.Fatal(err)
	}
	// The call must have begun before the stop, since a call that begins later is refused and delays nothing.
	// It has begun once the daemon reads: the second Send waits until most of the first was read.
	blank := &contextdv1.ImportTranscriptRequest{Part: &contextdv1.ImportTranscriptRequest_Data{Data: bytes.Repeat([]byte("\n"), 1<<20)}}
	for range 2 {
		if err := stuck.Send(blank); err != nil {
			t.Fatal(err)
		}
	}
}

// logThatNobodyReads closes the reading end of the log's pipe, or lets the pipe fill up. The daemon must go
// on, and stop in time.
func logThatNobodyReads(t *testing.T, binary string, closed bool) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := exec.Command(binary, "serve", "--log-level=debug", "--store=memory")
	cmd.Stderr = w
	p := spawn(t, cmd)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if closed {
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	client := contextdv1.NewContextServiceClient(p.conn)
	for range 500 { // lines of more than 200 bytes; the pipe holds 64 KiB
		if _, err := client.CountTokens(t.Context(), &contextdv1.CountTokensRequest{Text: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(t); code != cli.ExitOK {
		t.Errorf("it ended with %d", code)
	}
}

// terminateAtPipe sends SIGTERM to the program once it waits for what a pipe brings. It returns what closes the pipe.
func terminateAtPipe(t *testing.T, p *process, file string) (closePipe func()) {
	t.Helper()
	pipe, err := os.OpenFile(file, os.O_WRONLY, 0) // returns once the program has opened the pipe
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	return func() { pipe.Close() }
}
