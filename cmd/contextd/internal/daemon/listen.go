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

// listen opens the listeners of the configuration, but for those that are inherited.
func listen(c config.Config, inherited []net.Listener, a *auth.Authenticator, logger *slog.Logger) ([]*transport.Listener, error) {
	var out []*transport.Listener
	limits := transport.ConnectionLimits{
		Max: connectionLimit(c.MaxConnections, logger), MaxPerClient: c.MaxClientConnections, LeastIdle: leastIdle,
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

// leastIdle is how long clients are idle that others may replace: one that calls again and
// again is not disconnected between two calls. It is when a client that was refused comes back.
const leastIdle = fair.RetryAfter

// reservedFiles are file descriptors for what is no client: the store's files, above
// all.
const reservedFiles = 128

// connectionLimit is what of a limit the process has file descriptors for. The store
// must not lack any because of clients: half of them are its own, or all but those.
func connectionLimit(limit uint64, logger *slog.Logger) uint64 {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return limit
	}
	// There are two listeners at most.
	room := max(files.Cur/2, files.Cur-min(files.Cur, 2*reservedFiles)) / 2
	if room = max(room, 1); room >= limit {
		return limit
	}
	logger.Warn("there are file descriptors for fewer connections", "setting", "max_connections", "limit", limit, "file_descriptors", files.Cur, "connections", room)
	return room
}

// listenUnix opens a socket, in place of the stale one of a daemon that was killed. At no
// time can others than the mode says connect.
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
