package client_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/contextd/contextd/client"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// program builds the daemon, once.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "contextd-client-test")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "contextd")
	out, err := exec.Command("go", "build", "-o", path, "../cmd/contextd").CombinedOutput()
	os.Stderr.Write(out)
	return path, err
})

// daemon is a running contextd.
type daemon struct {
	address string
	cmd     *exec.Cmd
	drained chan struct{} // closed when its output has ended
}

// start runs a daemon; "127.0.0.1:0" is an address that is free.
func start(t *testing.T, address string, args ...string) *daemon {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, append([]string{"serve", "--listen", address, "--log-format", "json"}, args...)...)
	cmd.Env = append(os.Environ(), "OTEL_SDK_DISABLED=true")
	logs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d := &daemon{cmd: cmd, drained: make(chan struct{})}
	t.Cleanup(d.kill)
	lines := bufio.NewReader(logs)
	for d.address == "" {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			t.Fatalf("the daemon ended before it listened: %s", line)
		}
		var entry struct{ Msg, Address string }
		if json.Unmarshal(line, &entry) == nil && entry.Msg == "listening" {
			d.address = entry.Address
		}
	}
	go func() {
		defer close(d.drained)
		_, _ = io.Copy(io.Discard, lines)
	}()
	return d
}

// kill ends the daemon at once, as a crash does.
func (d *daemon) kill() {
	if d.cmd.ProcessState == nil {
		_ = d.cmd.Process.Kill()
		<-d.drained
		_ = d.cmd.Wait()
	}
}

// connect returns a client of the daemon.
func (d *daemon) connect(t *testing.T) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{Address: d.address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func inMemory(t *testing.T) *client.Client {
	return start(t, "127.0.0.1:0", "--store", "memory").connect(t)
}

func appendTo(t *testing.T, c *client.Client, session string, events ...*contextdv1.Event) {
	t.Helper()
	if _, err := c.Append(context.Background(), session, events...); err != nil {
		t.Fatal(err)
	}
}
