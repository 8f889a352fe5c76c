package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	contextdclient "github.com/contextd/contextd/client"
	"github.com/contextd/contextd/cmd/contextd/internal/auth"
	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/cmd/contextd/internal/daemon"
	"github.com/contextd/contextd/internal/log/disklog"
)

// embed runs a daemon within the process until the returned function is called. It has the settings of the
// environment, except for where it listens and what it stores in.
func (c *client) embed(ctx context.Context) (*grpc.ClientConn, func() error, error) {
	if !c.creates && !disklog.Exists(c.embedded) {
		return nil, nil, noStore(c.embedded)
	}
	return c.embedStore(ctx, config.StoreDisk, c.embedded)
}

// noStoreError reports that a directory is not a data directory.
type noStoreError struct{ error }

func (e *noStoreError) Unwrap() error { return e.error }

func noStore(dir string) error {
	return &noStoreError{status.Errorf(codes.NotFound, "%s holds no event log", oneLine(dir, 0))}
}

// settings are those of the environment.
func (c *client) settings() (config.Config, error) { return c.program.loadConfig("") }

// embedStore is embed with a given kind of store.
func (c *client) embedStore(ctx context.Context, store, dataDir string) (*grpc.ClientConn, func() error, error) {
	settings, err := c.settings()
	if err != nil {
		return nil, nil, err
	}
	settings.Listen, settings.UnixSocket, settings.MetricsListen, settings.InspectListen, settings.Auth = "", "", "", "", auth.Options{}
	caller, err := auth.InTenant(c.tenant)
	if err != nil {
		return nil, nil, usageError{fmt.Errorf("--tenant: %w", err)}
	}
	settings.Store, settings.DataDir = store, dataDir
	settings.LogLevel = max(settings.LogLevel, slog.LevelWarn)
	if store == config.StoreMemory {
		settings.LogLevel = max(settings.LogLevel, slog.LevelError) // do not warn that this store keeps nothing: that is intended
	}

	listener := bufconn.Listen(1 << 20)
	d, err := daemon.Build(ctx, daemon.Options{
		Config: settings, Logger: daemon.NewLogger(settings, c.program.Stderr),
		Listeners: []net.Listener{listener}, Caller: caller, LookupEnv: c.program.LookupEnv, Version: c.program.Version,
		Lazy: true, ReadOnly: store == config.StoreDisk && (c.reads || !disklog.Writable(dataDir) || disklog.IsBackup(dataDir)),
	})
	if err != nil {
		return nil, nil, err
	}
	// The daemon's context must not end with an interrupted command, so that the daemon stops in order.
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- d.Run(running) }()
	conn, err := contextdclient.Dial("passthrough:///embedded", contextdclient.Credentials{}, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		return listener.DialContext(ctx)
	}))
	if err != nil {
		stop()
		return nil, nil, errors.Join(err, <-ended)
	}
	return conn, func() error {
		err := conn.Close()
		stop()
		return errors.Join(err, <-ended)
	}, nil
}
