package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// daemon is the program on the database. It may be started several times.
type daemon struct {
	dir, dsn string
	metrics  string // the address of its metrics
	process  *exec.Cmd
	conn     *grpc.ClientConn
	api      contextdv1.ContextServiceClient
}

func newDaemon(ctx context.Context, dsn string) (*daemon, error) {
	dir, err := os.MkdirTemp("", "fleet")
	if err != nil {
		return nil, err
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d := &daemon{dir: dir, dsn: dsn, metrics: free.Addr().String()}
	_ = free.Close() // the daemon listens there instead
	build := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(dir, "contextd"), "github.com/contextd/contextd/cmd/contextd")
	if out, err := build.CombinedOutput(); err != nil {
		d.remove()
		return nil, fmt.Errorf("go build: %w\n%s", err, out)
	}
	return d, nil
}

// start returns once the daemon is ready.
func (d *daemon) start(ctx context.Context) error {
	socket := filepath.Join(d.dir, "s")
	d.process = exec.Command(filepath.Join(d.dir, "contextd"), "serve", "--store=postgres", "--listen=", "--unix-socket="+socket, "--log-level=warn", "--metrics-listen="+d.metrics)
	d.process.Env = append(os.Environ(), "CONTEXTD_POSTGRES_DSN="+d.dsn)
	d.process.Stderr = os.Stderr
	if err := d.process.Start(); err != nil {
		return err
	}
	var err error
	if d.conn, err = grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
		return err
	}
	d.api = contextdv1.NewContextServiceClient(d.conn)
	watch, err := grpc_health_v1.NewHealthClient(d.conn).Watch(ctx, &grpc_health_v1.HealthCheckRequest{}, grpc.WaitForReady(true))
	for err == nil {
		var is *grpc_health_v1.HealthCheckResponse
		if is, err = watch.Recv(); is.GetStatus() == grpc_health_v1.HealthCheckResponse_SERVING {
			return nil
		}
	}
	return errors.Join(err, d.stop())
}

func (d *daemon) stop() error {
	return errors.Join(d.conn.Close(), d.process.Process.Signal(os.Interrupt), d.process.Wait())
}

func (d *daemon) remove() { _ = os.RemoveAll(d.dir) }

// session creates a session of a few events, and records a context.
func (d *daemon) session(ctx context.Context, id string) error {
	for n := range 4 {
		if err := d.append(ctx, id, n); err != nil {
			return err
		}
	}
	return d.assemble(ctx, id)
}

// append adds a message of half a kilobyte.
func (d *daemon) append(ctx context.Context, id string, n int) error {
	role := contextdv1.Role_ROLE_USER
	if n%2 == 1 {
		role = contextdv1.Role_ROLE_ASSISTANT
	}
	text := fmt.Sprintf("message %d of %s: %s", n, id, strings.Repeat("what the agent said and saw. ", 16))
	block := &contextdv1.Block{Kind: &contextdv1.Block_Text{Text: &contextdv1.Text{Text: text}}}
	_, err := d.api.AppendEvents(ctx, &contextdv1.AppendEventsRequest{SessionId: id, Events: []*contextdv1.Event{
		{Kind: &contextdv1.Event_Message{Message: &contextdv1.Message{Role: role, Blocks: []*contextdv1.Block{block}}}},
	}})
	return err
}

func (d *daemon) assemble(ctx context.Context, id string) error {
	stream, err := d.api.AssembleContext(ctx, &contextdv1.AssembleContextRequest{SessionId: id, Budget: &contextdv1.Budget{MaxTokens: 32_000}})
	for err == nil {
		_, err = stream.Recv()
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return err
}

// scrape reads all metrics once.
func (d *daemon) scrape(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.metrics+"/metrics", http.NoBody)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return errors.Join(err, answer.Body.Close())
}
