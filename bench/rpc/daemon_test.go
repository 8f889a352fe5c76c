package rpc_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/contextd/contextd/bench/program"
)

// texts compress about as well as JSON does.
var texts = newTexts()

func newTexts() []string {
	r := rand.New(rand.NewPCG(1, size))
	words := make([]string, 512)
	for i := range words {
		words[i] = fmt.Sprintf("%x ", r.Uint64()>>r.IntN(48))
	}
	out := make([]string, 64)
	for i := range out {
		text := make([]byte, 0, size+16)
		for len(text) < size {
			text = append(text, words[r.IntN(len(words))]...)
		}
		out[i] = string(text[:size])
	}
	return out
}

func TestMain(m *testing.M) { program.Main(m) }

// connections is over how many connections the writers are spread.
const connections = 4

// process is the daemon in a process of its own, on a unix socket.
type process struct {
	b     *testing.B
	cmd   *exec.Cmd
	conns []*grpc.ClientConn
}

// start starts the daemon, by default with a disk store, with more of its flags and environment.
func start(b *testing.B, more ...string) *process {
	b.Helper()
	dir := b.TempDir()
	socket := filepath.Join(dir, "c.sock")
	binary, err := program.Path()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(binary, "serve", "--listen=", "--unix-socket="+socket, "--data-dir="+filepath.Join(dir, "data"), "--log-level=warn")
	cmd.Env = os.Environ()
	for _, m := range more {
		if strings.HasPrefix(m, "--") {
			cmd.Args = append(cmd.Args, m)
		} else {
			cmd.Env = append(cmd.Env, m)
		}
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	p := &process{b: b, cmd: cmd}
	for range connections {
		conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			b.Fatal(err)
		}
		p.conns = append(p.conns, conn)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	watch, err := grpc_health_v1.NewHealthClient(p.conns[0]).Watch(ctx, &grpc_health_v1.HealthCheckRequest{}, grpc.WaitForReady(true))
	for err == nil {
		var resp *grpc_health_v1.HealthCheckResponse
		if resp, err = watch.Recv(); resp.GetStatus() == grpc_health_v1.HealthCheckResponse_SERVING {
			return p
		}
	}
	p.stop()
	b.Fatal(err)
	return nil
}

func (p *process) conn(writer int) *grpc.ClientConn { return p.conns[writer%len(p.conns)] }

func (p *process) stop() {
	for _, c := range p.conns {
		if err := c.Close(); err != nil {
			p.b.Error(err)
		}
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.b.Error(err)
	}
	if err := p.cmd.Wait(); err != nil {
		p.b.Error(err)
	}
}

// barePebble is what a durable append could at best cost: one key per event, no
// index, no chain, no checks, and no process between.
func barePebble(b *testing.B) (worker, func()) {
	o := &pebble.Options{FormatMajorVersion: pebble.FormatNewest, MemTableSize: 16 << 20, CacheSize: 16 << 20, Logger: quiet{}}
	o.Experimental.ValueSeparationPolicy = func() pebble.ValueSeparationPolicy {
		return pebble.ValueSeparationPolicy{Enabled: true, MinimumSize: 512, MaxBlobReferenceDepth: 100, TargetGarbageRatio: 0.2}
	}
	db, err := pebble.Open(b.TempDir(), o)
	if err != nil {
		b.Fatal(err)
	}
	return func(writer int, next func() (int, bool), took func(time.Duration)) error {
			for {
				n, ok := next()
				if !ok {
					return nil
				}
				began := time.Now()
				key := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64([]byte{'e'}, uint64(writer)), uint64(n))
				batch := db.NewBatch()
				if err := batch.Set(key, []byte(texts[n%len(texts)]), nil); err != nil {
					return err
				}
				if err := batch.Commit(pebble.Sync); err != nil {
					return err
				}
				took(time.Since(began))
			}
		}, func() {
			if err := db.Close(); err != nil {
				b.Error(err)
			}
		}
}

type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}
