package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// connections is the number of connections that calls are spread over.
const connections = 8

// daemon is the program on a store. It may be started several times.
type daemon struct {
	dir     string
	process *exec.Cmd
	conns   []*grpc.ClientConn
}

// newDaemon builds the program as it is released.
func newDaemon(ctx context.Context) (*daemon, error) {
	dir, err := os.MkdirTemp("", "footprint")
	if err != nil {
		return nil, err
	}
	d := &daemon{dir: dir}
	build := exec.CommandContext(ctx, "make", "build", "PROGRAM="+d.program())
	if out, err := build.CombinedOutput(); err != nil {
		d.remove()
		return nil, fmt.Errorf("make build, in the root of the repository: %w\n%s", err, out)
	}
	info, err := os.Stat(d.program())
	if err != nil {
		return nil, err
	}
	fmt.Printf("program: %.1f MiB\n", float64(info.Size())/(1<<20))
	return d, nil
}

func (d *daemon) program() string { return filepath.Join(d.dir, "contextd") }

func (d *daemon) remove() { _ = os.RemoveAll(d.dir) }

func (d *daemon) api(i int) contextdv1.ContextServiceClient {
	return contextdv1.NewContextServiceClient(d.conns[i%len(d.conns)])
}

// running starts the daemon, calls do once it is ready, and stops it.
func (d *daemon) running(ctx context.Context, flags []string, do func() error) error {
	if err := d.start(ctx, flags); err != nil {
		return errors.Join(err, d.stop())
	}
	return errors.Join(do(), d.stop())
}

func (d *daemon) start(ctx context.Context, flags []string) error {
	socket := filepath.Join(d.dir, "s")
	d.process = exec.Command(d.program(), append([]string{
		"serve", "--listen=", "--unix-socket=" + socket, "--data-dir=" + filepath.Join(d.dir, "data"), "--log-level=warn",
	}, flags...)...)
	d.process.Stderr = os.Stderr
	if err := d.process.Start(); err != nil {
		return err
	}
	if err := listening(ctx, socket); err != nil {
		return err
	}
	d.conns = nil
	for range connections {
		conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return err
		}
		d.conns = append(d.conns, conn)
	}
	watch, err := grpc_health_v1.NewHealthClient(d.conns[0]).Watch(ctx, &grpc_health_v1.HealthCheckRequest{}, grpc.WaitForReady(true))
	for err == nil {
		var is *grpc_health_v1.HealthCheckResponse
		if is, err = watch.Recv(); is.GetStatus() == grpc_health_v1.HealthCheckResponse_SERVING {
			return nil
		}
	}
	return err
}

func (d *daemon) stop() error {
	var errs []error
	for _, c := range d.conns {
		errs = append(errs, c.Close())
	}
	if d.process.Process != nil {
		errs = append(errs, d.process.Process.Signal(os.Interrupt), d.process.Wait())
	}
	return errors.Join(errs...)
}

// resident is the daemon's resident memory, in KiB.
func (d *daemon) resident() (uint64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.process.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, after, ok := strings.Cut(string(data), "VmRSS:")
	if !ok {
		return 0, errors.New("the kernel does not say how much memory a process holds")
	}
	return strconv.ParseUint(strings.Fields(after)[0], 10, 64)
}
