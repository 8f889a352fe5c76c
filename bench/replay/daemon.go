package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// maxMessage is the largest gRPC message that the client accepts: an event of the largest size that the
// default configuration allows, rendered.
const maxMessage = 64 << 20

// daemon is a running contextd and a connection to it.
type daemon struct {
	store   string
	args    []string
	cmd     *exec.Cmd
	conn    *grpc.ClientConn
	api     contextdv1.ContextServiceClient
	in      contextdv1.TranscriptServiceClient
	watcher *watcher
}

// buildDaemon compiles the program into dir.
func buildDaemon(ctx context.Context, dir string) (string, error) {
	binary := filepath.Join(dir, "contextd")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", binary, "github.com/contextd/contextd/cmd/contextd")
	cmd.Stderr = os.Stderr
	return binary, cmd.Run()
}

// startDaemon runs the program with a store of the given kind; name distinguishes its files in dir.
func startDaemon(ctx context.Context, binary, store, dir, name string, more ...string) (*daemon, error) {
	socket := filepath.Join(dir, name+".sock")
	d := &daemon{store: store, watcher: newWatcher(), args: append([]string{
		binary, "serve", "--listen", "", "--unix-socket", socket,
		"--store", store, "--data-dir", filepath.Join(dir, name), "--log-level", "error",
	}, more...)}
	var err error
	d.conn, err = grpc.NewClient("unix://"+socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.WaitForReady(true)))
	if err != nil {
		return nil, err
	}
	d.api, d.in = contextdv1.NewContextServiceClient(d.conn), contextdv1.NewTranscriptServiceClient(d.conn)
	if err := d.start(ctx); err != nil {
		return nil, err
	}
	return d, nil
}

func (d *daemon) start(ctx context.Context) error {
	d.cmd = exec.Command(d.args[0], d.args[1:]...)
	d.cmd.Stderr = os.Stderr
	if err := d.cmd.Start(); err != nil {
		return err
	}
	watch := ctx
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	health := healthv1.NewHealthClient(d.conn)
	for {
		answer, err := health.Check(ctx, &healthv1.HealthCheckRequest{})
		if err == nil && answer.GetStatus() == healthv1.HealthCheckResponse_SERVING {
			return d.watcher.follow(watch, contextdv1.NewCompactionServiceClient(d.conn))
		}
		if ctx.Err() != nil {
			return errors.Join(fmt.Errorf("the daemon did not become ready: %w", err), d.stop())
		}
	}
}

// stop ends the daemon by SIGTERM, as an operator would.
func (d *daemon) stop() error {
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return d.cmd.Wait()
}

// restart stops the daemon and starts it on the same store.
func (d *daemon) restart(ctx context.Context) error {
	if err := d.stop(); err != nil {
		return err
	}
	return d.start(ctx)
}

func (d *daemon) close() error {
	return errors.Join(d.stop(), d.conn.Close())
}
