package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	contextdclient "github.com/contextd/contextd/client"
	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/cmd/contextd/internal/inspect"
	"github.com/contextd/contextd/cmd/contextd/internal/transport"
)

// inspector serves the page for browsers. Its calls are ordinary calls of the API over a connection within the
// process; a browser's bearer token identifies the caller.
type inspector struct {
	listener net.Listener
	server   *http.Server
	// api is the listener on which the daemon serves these calls, and conn the connection to it.
	api  *bufconn.Listener
	conn *grpc.ClientConn
	// close also ends responses that are being read; the page repeats its calls.
	close func() error
}

// maxViewers bounds the browsers' connections; one more replaces the longest idle one.
const maxViewers = 128

func (d *Daemon) newInspector(o Options) (*inspector, error) {
	address := o.Config.InspectListen
	tcp, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("inspect_listen: %w", err)
	}
	i := &inspector{api: bufconn.Listen(64 << 10)}
	i.conn, err = contextdclient.Dial("passthrough:///inspector", contextdclient.Credentials{}, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return i.api.DialContext(ctx) }))
	if err != nil {
		return nil, errors.Join(err, tcp.Close())
	}
	i.listener = transport.Limited(tcp, limitsAside(maxViewers), o.Logger)
	i.listener = d.auth.Listener(i.listener)
	i.server = inspect.NewServer(inspect.Options{API: i.conn, Loopback: !config.Reachable(address), SendTimeout: o.Config.SendTimeout})
	i.close = sync.OnceValue(i.shut)
	return i, nil
}

func (i *inspector) serve() error {
	if err := i.server.Serve(i.listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the inspector: %w", err)
	}
	return nil
}

func (i *inspector) shut() error {
	err := errors.Join(i.server.Close(), i.conn.Close(), i.api.Close())
	if lerr := i.listener.Close(); lerr != nil && !errors.Is(lerr, net.ErrClosed) {
		err = errors.Join(err, lerr)
	}
	return err
}
