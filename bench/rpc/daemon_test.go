package rpc_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/contextd/contextd/bench/program"
	"github.com/contextd/contextd/client"
)

func TestMain(m *testing.M) {
	serveBare()
	program.Main(m)
}

// connections is how many connections the writers share.
const connections = 4

// process is a server in a process of its own, on a unix socket.
type process struct {
	b     *testing.B
	cmd   *exec.Cmd
	conns []*grpc.ClientConn
}

// start starts the daemon with more flags and variables. It has a disk store unless these say otherwise.
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
	return launch(b, cmd, socket)
}

// launch starts a server and waits until it serves on its socket.
func launch(b *testing.B, cmd *exec.Cmd, socket string) *process {
	b.Helper()
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	p := &process{b: b, cmd: cmd}
	b.Cleanup(func() { _ = cmd.Process.Kill() }) // it still runs only if the benchmark failed
	for range connections {
		conn, err := client.Dial("unix://"+socket, client.Credentials{})
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
