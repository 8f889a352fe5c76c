package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/contextd/contextd/cmd/contextd/internal/cli"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// withFiles is the command of the program in a process that may have so many files open.
func withFiles(files int, binary string, args ...string) *exec.Cmd {
	return exec.Command("sh", append([]string{"-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, files), binary}, args...)...)
}

// TestFewFiles has a daemon with as few descriptors as it takes hold a store of more files, while more clients connect
// than may be connected: the store lacks no descriptor, and a new client is served.
func TestFewFiles(t *testing.T) {
	const files, sessions, size = 128, 16, 256 << 10
	dir := filepath.Join(t.TempDir(), "data")
	// A small reserve makes small files.
	p := spawn(t, withFiles(files, build(t), "serve", "--listen=", "--log-level=warn", "--data-dir="+dir, "--disk-reserve=2MiB"))
	client := contextdv1.NewContextServiceClient(p.conn)
	rng := rand.New(rand.NewPCG(*seed, 0))
	for n := 0; ; n++ {
		if stored, err := os.ReadDir(filepath.Join(dir, "db")); err != nil {
			t.Fatal(err)
		} else if len(stored) > files {
			break
		}
		if _, err := client.AppendEvents(t.Context(), user(fmt.Sprintf("s%d", n%sessions), noise(rng, size))); err != nil {
			t.Fatal(err)
		}
	}
	readThem := func(conn *grpc.ClientConn) {
		var readers sync.WaitGroup
		for i := range sessions {
			readers.Go(func() { readThrough(t, conn, fmt.Sprintf("s%d", i)) })
		}
		readers.Wait()
	}
	readThem(p.conn)
	for range files {
		idle, err := net.Dial("unix", p.socket)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = idle.Close() })
	}
	fresh := p.dial(t)
	readThrough(t, fresh, "s0")
	readThem(fresh)
	if log := p.log.String(); strings.Contains(log, "waits for a file descriptor") || strings.Contains(log, "too many open files") {
		t.Errorf("descriptors are lacking:\n%s", log)
	}
}

// TestTooFewFiles: a process that may not have enough files open does not start, and says so.
func TestTooFewFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	for _, files := range []int{20, 127} {
		p := launch(t, withFiles(files, build(t), "serve", "--listen=", "--data-dir="+dir))
		if code := p.wait(t); code != cli.ExitFailure {
			t.Errorf("with %d files it ends with %d", files, code)
		}
		if want := fmt.Sprintf("the process may have %d files open, and needs 128", files); !strings.Contains(p.log.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, p.log)
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("it made a store")
	}
}

// readThrough reads a session, and again while others have all places for connections.
func readThrough(t *testing.T, conn *grpc.ClientConn, session string) {
	for {
		stream, err := contextdv1.NewContextServiceClient(conn).ReadEvents(t.Context(), &contextdv1.ReadEventsRequest{SessionId: session})
		for err == nil {
			_, err = stream.Recv()
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if code := status.Code(err); code != codes.ResourceExhausted && code != codes.Unavailable {
			t.Error(err)
			return
		}
	}
}

// noise is text that does not compress well.
func noise(rng *rand.Rand, bytes int) string {
	out := make([]byte, bytes)
	for i := range out {
		out[i] = byte(' ' + rng.IntN(94))
	}
	return string(out)
}
