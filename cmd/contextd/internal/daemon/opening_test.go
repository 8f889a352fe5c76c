package daemon_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/cmd/contextd/internal/daemon"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// TestProbes: a daemon is alive and not ready while its store is being opened, here because the command for its key
// waits, and while it stops.
func TestProbes(t *testing.T) {
	address, pipe := free(t), namedPipe(t, t.TempDir(), "key")
	c := settings(t, func(c *config.Config) {
		c.MetricsListen, c.EncryptionKeyCommand, c.ShutdownTimeout = address, []string{"cat", pipe}, time.Hour
	})
	built := make(chan *daemon.Daemon)
	go func() {
		d, err := daemon.Build(t.Context(), options(t, c))
		if err != nil {
			t.Error(err)
		}
		built <- d
	}()
	key, err := os.OpenFile(pipe, os.O_WRONLY, 0) // returns once the command reads
	if err != nil {
		t.Fatal(err)
	}
	probes := func(when string, live, ready, metrics int) {
		t.Helper()
		for path, want := range map[string]int{"/livez": live, "/readyz": ready, "/metrics": metrics} {
			if got := statusAt(t, "http://"+address+path); got != want {
				t.Errorf("%s %s answers %d, want %d", when, path, got, want)
			}
		}
	}
	probes("before the store is open", 200, 503, 503)
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	_, err = key.WriteString(identity.String())
	if err := errors.Join(err, key.Close()); err != nil {
		t.Fatal(err)
	}
	d := <-built
	if d == nil {
		return
	}
	r := run(t, d)
	r.await(t, serving)
	probes("while it serves", 200, 200, 200)

	stuck, err := contextdv1.NewTranscriptServiceClient(r.conn).ImportTranscript(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	header := &contextdv1.ImportTranscriptRequest{Part: &contextdv1.ImportTranscriptRequest_Header{Header: &contextdv1.ImportHeader{SessionId: "s", Harness: "claude"}}}
	if err := stuck.Send(header); err != nil {
		t.Fatal(err)
	}
	blank := &contextdv1.ImportTranscriptRequest{Part: &contextdv1.ImportTranscriptRequest_Data{Data: bytes.Repeat([]byte("\n"), 1<<20)}}
	for range 2 { // the second is sent once the daemon has read of the first: then the call has begun
		if err := stuck.Send(blank); err != nil {
			t.Fatal(err)
		}
	}
	r.stop()
	for statusAt(t, "http://"+address+"/readyz") == 200 {
		runtime.Gosched() // until the stop has begun
	}
	probes("while it stops", 200, 503, 200)
	if _, err := stuck.CloseAndRecv(); err == nil {
		t.Error("blanks were imported")
	}
	r.end(t)
	if answer, err := http.Get("http://" + address + "/livez"); err == nil {
		t.Errorf("after its end /livez answers %s", errors.Join(errors.New(answer.Status), answer.Body.Close()))
	}
}

// TestStopWhileOpening: a stop waits for a store that is being opened as long as for any other thing.
func TestStopWhileOpening(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, c *config.Config) (pipe string){
		"a file of the store": func(t *testing.T, c *config.Config) string {
			return namedPipe(t, c.DataDir, "FORMAT")
		},
		"what a command has started": func(t *testing.T, c *config.Config) string {
			pipe := namedPipe(t, t.TempDir(), "key")
			c.EncryptionKeyCommand = []string{"sh", "-c", "cat " + pipe + "; true"}
			return pipe
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := settings(t, func(c *config.Config) { c.ShutdownTimeout = 0 })
			pipe := change(t, &c)
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				_, err := daemon.Build(ctx, options(t, c))
				ended <- err
			}()
			waits, err := os.OpenFile(pipe, os.O_WRONLY, 0) // returns once it is read
			if err != nil {
				t.Fatal(err)
			}
			defer waits.Close()
			stop()
			if err := <-ended; !errors.Is(err, daemon.ErrUnfinished) && !errors.Is(err, context.Canceled) {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}

func namedPipe(t *testing.T, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
