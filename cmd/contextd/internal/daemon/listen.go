package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"syscall"

	"github.com/contextd/contextd/cmd/contextd/internal/auth"
	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/cmd/contextd/internal/transport"
	"github.com/contextd/contextd/internal/fair"
)

// listen opens the configured listeners, except those that are inherited.
func listen(c config.Config, inherited []net.Listener, a *auth.Authenticator, logger *slog.Logger) ([]*transport.Listener, error) {
	var out []*transport.Listener
	available := openFiles()
	limits := transport.ConnectionLimits{Max: c.MaxConnections, MaxPerClient: c.MaxClientConnections, LeastIdle: leastIdle}
	if room := available.api(c); room < limits.Max && c.Listen+c.UnixSocket != "" {
		logger.Warn("there are file descriptors for fewer connections", "setting", "max_connections", "limit", limits.Max, "file_descriptors", uint64(available), "connections", room)
		limits.Max = room
	}
	if c.Listen != "" {
		l, err := inheritedOr(inherited, "tcp", func() (net.Listener, error) { return net.Listen("tcp", c.Listen) })
		if err != nil {
			return out, fmt.Errorf("listen: %w", err)
		}
		if config.Reachable(c.Listen) && !c.Auth.ByNetwork() {
			logger.Warn("whoever reaches this address can read and change everything: there is no authentication", "setting", "listen", "address", l.Addr().String())
		}
		own := transport.Limited(l, limits, logger)
		own.Credentials = a.Network()
		out = append(out, own)
	}
	if c.UnixSocket != "" {
		l, err := inheritedOr(inherited, "unix", func() (net.Listener, error) { return listenUnix(c.UnixSocket, c.UnixSocketMode) })
		if err != nil {
			return out, err
		}
		own := transport.Limited(l, limits, logger)
		own.Credentials = auth.Socket()
		own.Client = auth.ProcessOf
		out = append(out, own)
	}
	return out, nil
}

func inheritedOr(inherited []net.Listener, network string, open func() (net.Listener, error)) (net.Listener, error) {
	for _, l := range inherited {
		if l.Addr().Network() == network {
			return l, nil
		}
	}
	return open()
}

// leastIdle is how long a client must be idle before another may replace it, so that one that calls steadily is not
// disconnected between two calls. It is the time after which a refused client retries.
const leastIdle = fair.RetryAfter

// listenUnix opens a socket, and replaces a stale one of a killed daemon. Users that mode excludes cannot connect at
// any time.
func listenUnix(path string, mode fs.FileMode) (net.Listener, error) {
	if most := len(syscall.RawSockaddrUnix{}.Path) - 1; len(path) > most {
		return nil, fmt.Errorf("unix_socket: %s is longer than the %d bytes that a socket's path may have", path, most)
	}
	if err := removeStale(path); err != nil {
		return nil, fmt.Errorf("unix_socket %s: %w", path, err)
	}
	before := syscall.Umask(0o177)
	l, err := net.Listen("unix", path)
	syscall.Umask(before)
	if err != nil {
		return nil, fmt.Errorf("unix_socket: %w", err)
	}
	if err := os.Chmod(path, mode); err != nil {
		return nil, errors.Join(fmt.Errorf("unix_socket: %w", err), l.Close())
	}
	return l, nil
}

// removeStale removes a socket that nobody serves. It removes no other files.
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

// target returns an address in the form for gRPC clients.
func target(a net.Addr) string {
	if a.Network() == "unix" {
		return "unix://" + a.String()
	}
	return a.String()
}
