package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

const (
	// away is how long a daemon is not there when it is started again.
	away = 300 * time.Millisecond
	// slowness is what a slow daemon's answers take longer.
	slowness = 150 * time.Millisecond
)

// playScenario starts a daemon, runs the command with it, writes its lines to out and does
// what they say of the daemon.
func playScenario(ctx context.Context, binary, file string, command []string, out io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	data, err := os.MkdirTemp("", "contextd-outages-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(data)) }()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	o := &outage{Listener: l, binary: binary, store: []string{"--data-dir", filepath.Join(data, "store")}}
	defer o.stop()
	if err := o.start(ctx); err != nil {
		return err
	}
	server := proxy{daemon: o.daemon, enter: o.enter, leave: o.leave}.server()
	served := make(chan error, 1)
	go func() { served <- server.Serve(o) }()
	defer func() {
		server.Stop()
		err = errors.Join(err, <-served)
	}()

	cmd := program(ctx, command, l.Addr().String(), file)
	answers, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	lines, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	for scanner := bufio.NewScanner(lines); err == nil && scanner.Scan(); {
		fmt.Fprintln(out, scanner.Text())
		var line struct{ Daemon string }
		if err = json.Unmarshal(scanner.Bytes(), &line); err == nil && line.Daemon != "" {
			if err = o.do(ctx, line.Daemon); err == nil {
				_, err = answers.Write([]byte("\n"))
			}
		}
	}
	if err != nil {
		cancel()
	}
	return errors.Join(err, cmd.Wait())
}

// outage is a daemon that fails its clients, and the listener of those.
type outage struct {
	net.Listener
	binary string
	store  []string // its flags

	returning sync.WaitGroup // a daemon that is started again
	failed    error          // of that

	mu      sync.Mutex
	process *exec.Cmd
	conn    *grpc.ClientConn // nil while there is no daemon
	clients []net.Conn
	slow    bool
	cut     map[string]bool // the methods of which an answer was lost
}

// do fails the clients in a way that a scenario names. It returns while the daemon is away.
func (o *outage) do(ctx context.Context, what string) error {
	o.returning.Wait()
	if o.failed != nil {
		return o.failed
	}
	switch what {
	case "slow":
		o.mu.Lock()
		defer o.mu.Unlock()
		o.slow, o.cut = true, map[string]bool{}
		return nil
	case "lose":
		o.store = []string{"--store", "memory"}
	case "restart":
	default:
		return fmt.Errorf("nobody knows how to %s a daemon", what)
	}
	o.stop()
	o.returning.Go(func() {
		select {
		case <-time.After(away):
			o.failed = o.start(ctx)
		case <-ctx.Done():
		}
	})
	return nil
}

// start starts the daemon and returns when it listens.
func (o *outage) start(ctx context.Context) error {
	cmd := program(ctx, append([]string{o.binary, "serve", "--listen", "127.0.0.1:0", "--log-format", "json"}, o.store...))
	cmd.Stderr = nil
	logs, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	address := listening(logs)
	// The daemon must not block on a log that nobody reads.
	go func() { _, _ = io.Copy(io.Discard, logs) }()
	if address == "" {
		return errors.Join(errors.New("the daemon ended before it listened"), cmd.Wait())
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	o.mu.Lock()
	defer o.mu.Unlock()
	o.process, o.conn, o.slow = cmd, conn, false
	return err
}

// listening is the address that a daemon's log names; empty where it ends before.
func listening(logs io.Reader) string {
	for lines := bufio.NewScanner(logs); lines.Scan(); {
		var line struct{ Msg, Address string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "listening" {
			return line.Address
		}
	}
	return ""
}

// stop kills the daemon, and breaks the connections to it.
func (o *outage) stop() {
	o.returning.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.disconnect()
	if o.process == nil {
		return
	}
	_ = o.process.Process.Kill()
	_ = o.process.Wait()
	_ = o.conn.Close()
	o.process, o.conn = nil, nil
}

func (o *outage) disconnect() {
	for _, c := range o.clients {
		_ = c.Close()
	}
	o.clients = nil
}

// Accept closes connections at once while there is no daemon.
func (o *outage) Accept() (net.Conn, error) {
	for {
		c, err := o.Listener.Accept()
		if err != nil {
			return nil, err
		}
		o.mu.Lock()
		there := o.conn != nil
		if there {
			o.clients = append(o.clients, c)
		}
		o.mu.Unlock()
		if there {
			return c, nil
		}
		_ = c.Close()
	}
}

// enter refuses what came just before the daemon was gone.
func (o *outage) enter(string) error {
	if o.daemon() == nil {
		return status.Error(codes.Unavailable, "the connection was cut")
	}
	return nil
}

func (o *outage) daemon() *grpc.ClientConn {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.conn
}

// leave holds the answers of a slow daemon back. Once for each method, it breaks the connection:
// before the answer to an append, or after the header of a context.
func (o *outage) leave(method string, n int) error {
	o.mu.Lock()
	slow := o.slow
	o.mu.Unlock()
	if !slow {
		return nil
	}
	time.Sleep(slowness)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cut[method] || method == assembleContext && n == 0 {
		return nil
	}
	o.cut[method] = true
	o.disconnect()
	return status.Error(codes.Unavailable, "the connection was cut")
}
