package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"

	"golang.org/x/net/netutil"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
)

// socketMode lets the daemon's user and group connect. The API knows no other
// access control.
const socketMode = 0o660

// listen opens the listeners of the configuration.
func listen(c config.Config) ([]net.Listener, error) {
	var out []net.Listener
	if c.Listen != "" {
		l, err := net.Listen("tcp", c.Listen)
		if err != nil {
			return out, fmt.Errorf("listen: %w", err)
		}
		out = append(out, limited(l, c))
	}
	if c.UnixSocket != "" {
		l, err := listenUnix(c.UnixSocket)
		if err != nil {
			return out, err
		}
		out = append(out, limited(l, c))
	}
	return out, nil
}

func limited(l net.Listener, c config.Config) net.Listener {
	return netutil.LimitListener(l, int(c.MaxConnections))
}

// listenUnix opens a socket, in place of one that a daemon left behind when it
// was killed.
func listenUnix(path string) (net.Listener, error) {
	if err := removeStale(path); err != nil {
		return nil, fmt.Errorf("unix_socket %s: %w", path, err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("unix_socket: %w", err)
	}
	if err := os.Chmod(path, socketMode); err != nil {
		return nil, errors.Join(fmt.Errorf("unix_socket: %w", err), l.Close())
	}
	return l, nil
}

// removeStale removes a socket that nobody serves, and nothing else.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return errors.New("exists and is not a socket")
	}
	conn, err := net.Dial("unix", path)
	if err == nil {
		return errors.Join(errors.New("another daemon serves it"), conn.Close())
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return os.Remove(path)
}

// target is an address as gRPC clients name it.
func target(a net.Addr) string {
	if a.Network() == "unix" {
		return "unix://" + a.String()
	}
	return a.String()
}
