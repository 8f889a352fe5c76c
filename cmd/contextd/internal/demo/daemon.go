package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"path/filepath"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/cmd/contextd/internal/daemon"
)

// running is a daemon within the process and a connection to it.
type running struct {
	conn  *grpc.ClientConn
	stop  context.CancelFunc
	ended chan error
}

// start runs a daemon as "contextd serve" does, with the disk store in dir and the API on a free loopback
// port. It ignores the user's settings, so that the output for a session is the same everywhere.
func start(ctx context.Context, dir string, diagnostics io.Writer) (*running, error) {
	c := config.Default()
	c.Listen, c.UnixSocket, c.MetricsListen = "127.0.0.1:0", "", ""
	c.Store, c.DataDir = config.StoreDisk, filepath.Join(dir, "data")
	c.LogLevel = slog.LevelError // when the demo ends, it interrupts its own watch
	if err := c.Validate(); err != nil {
		return nil, err
	}
	d, err := daemon.Build(ctx, daemon.Options{Config: c, Logger: daemon.NewLogger(c, diagnostics)})
	if err != nil {
		return nil, err
	}
	// An interrupt must end the replay first, which then stops the daemon.
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	r := &running{stop: stop, ended: make(chan error, 1)}
	go func() { r.ended <- d.Run(background) }()
	addresses := d.Addresses()
	if len(addresses) != 1 {
		return nil, errors.Join(fmt.Errorf("the daemon listens at %q", addresses), r.close())
	}
	r.conn, err = grpc.NewClient(addresses[0],
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		// An event, and so a message, may be larger than gRPC's default of 4 MiB.
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)),
	)
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

// close ends the daemon and waits for it.
func (r *running) close() error {
	var err error
	if r.conn != nil {
		err = r.conn.Close()
	}
	r.stop()
	return errors.Join(err, <-r.ended)
}
