package transport

import (
	"container/list"
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"

	"github.com/contextd/contextd/internal/fair"
	"github.com/contextd/contextd/internal/memory"
)

// surplusConnections are accepted beyond the limit, only for health checks: on others calls
// are refused with the reason.
const surplusConnections = 16

// logEvery is how often a kind of trouble with connections is logged at most.
const logEvery = 10 * time.Second

// ConnectionCounts count connections.
type ConnectionCounts struct{ Open, Accepted, Refused, Evicted int64 }

// ConnectionLimits say how many clients may be connected, and how often each of them.
type ConnectionLimits struct{ Max, MaxPerClient uint64 }

// Listener bounds how many clients are connected. Where there are too many, the one that
// has been without a call for longest has to go; it is free to come back.
type Listener struct {
	net.Listener
	// Credentials, if set, find out who connects, before the first connection is accepted.
	Credentials credentials.TransportCredentials
	// Client, if set, names who connects; "" where it does not know.
	Client func(net.Conn) string

	limits ConnectionLimits
	logger *slog.Logger

	mu sync.Mutex
	// idle are the connections without a call, for longest first, and surplus those beyond
	// the limit, oldest first.
	idle, surplus *list.List
	open          uint64            // those within the limit
	clients       map[string]uint64 // of these, by client

	counts struct{ open, accepted, refused, evicted atomic.Int64 }

	logMu  sync.Mutex
	logged map[string]time.Time
	muted  map[string]int
}

// Limited returns a listener for so many connections.
func Limited(l net.Listener, limits ConnectionLimits, logger *slog.Logger) *Listener {
	limits.Max = max(limits.Max, 1)
	return &Listener{
		Listener: l, limits: limits, logger: logger, idle: list.New(), surplus: list.New(), clients: map[string]uint64{},
		logged: map[string]time.Time{}, muted: map[string]int{},
	}
}

// Counts returns the counts so far.
func (l *Listener) Counts() ConnectionCounts {
	return ConnectionCounts{l.counts.open.Load(), l.counts.accepted.Load(), l.counts.refused.Load(), l.counts.evicted.Load()}
}

// Accept implements net.Listener. A temporary error, such as too few file descriptors,
// costs the connection that was idle for longest; gRPC asks again.
func (l *Listener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			l.warn("there are no file descriptors for another connection", "error", err)
			l.evict("max_connections", func(*conn) bool { return true })
		}
		return nil, err
	}
	l.counts.accepted.Add(1)
	l.counts.open.Add(1)
	c := &conn{Conn: raw, list: l, client: l.clientOf(raw)}
	if c.beyond = l.full(c.client); c.beyond != nil && l.evictFor(c) {
		c.beyond = l.full(c.client)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.beyond == nil {
		l.open++
		l.clients[c.client]++
		c.place = l.idle.PushBack(c)
		return c, nil
	}
	c.place = l.surplus.PushBack(c)
	l.counts.refused.Add(1)
	l.warn("all connections are in use by calls; another may check the health only", "setting", c.beyond.Setting, "limit", c.beyond.Limit)
	if l.surplus.Len() > surplusConnections {
		// Closing it takes the lock.
		go l.surplus.Front().Value.(*conn).shut()
	}
	return c, nil
}

// clientOf names who connects: as Client says, or the machine unless it is this one, of which
// anybody may come.
func (l *Listener) clientOf(raw net.Conn) string {
	if l.Client != nil {
		return l.Client(raw)
	}
	if a, ok := raw.RemoteAddr().(*net.TCPAddr); ok && !a.IP.IsLoopback() {
		return a.IP.String()
	}
	return ""
}

// full returns the limit that keeps a client from connecting again, or nil.
func (l *Listener) full(client string) *fair.BusyError {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.clients[client]
	switch {
	case client == "":
		own = 0 // each of them may be another
	case own >= l.limits.MaxPerClient:
		return &fair.BusyError{Setting: "max_client_connections", Limit: l.limits.MaxPerClient, RetryAfter: fair.RetryAfter}
	}
	if !hasRoom(l.limits.Max, l.open, own) {
		return &fair.BusyError{Setting: "max_connections", Limit: l.limits.Max, RetryAfter: fair.RetryAfter}
	}
	return nil
}

// evictFor disconnects, in the place of a connection beyond a limit, the one that has been
// without a call for longest, of the same client if the limit is that of each.
func (l *Listener) evictFor(c *conn) bool {
	own := c.beyond.Setting == "max_client_connections"
	return l.evict(c.beyond.Setting, func(idle *conn) bool { return !own || idle.client == c.client })
}

// evict disconnects the client that has been without a call for longest of those that may be,
// if there is any.
func (l *Listener) evict(setting string, may func(*conn) bool) bool {
	l.mu.Lock()
	var found *conn
	for place := l.idle.Front(); place != nil && found == nil; place = place.Next() {
		if c := place.Value.(*conn); may(c) {
			found = c
		}
	}
	l.mu.Unlock()
	if found == nil {
		return false
	}
	l.counts.evicted.Add(1)
	l.warn("disconnected the client that was idle for longest", "setting", setting)
	found.shut()
	return true
}

// drop disconnects a client for a reason.
func (l *Listener) drop(c *conn, reason string) {
	l.counts.evicted.Add(1)
	l.warn("disconnected a client", "reason", reason)
	c.shut()
}

// warn logs a kind of trouble, and not again for a while.
func (l *Listener) warn(what string, args ...any) {
	l.logMu.Lock()
	defer l.logMu.Unlock()
	if time.Since(l.logged[what]) < logEvery {
		l.muted[what]++
		return
	}
	if n := l.muted[what]; n > 0 {
		args = append(args, "times_since_last", n)
	}
	l.logged[what], l.muted[what] = time.Now(), 0
	l.logger.Warn("there is trouble with connections", append(args, "listener", l.Addr().String(), "what", what)...)
}

// conn is a client's connection.
type conn struct {
	net.Conn
	list   *Listener
	client string
	beyond *fair.BusyError // the limit that it is beyond, if any: it may check the health only
	closed sync.Once
	err    error

	// What list.mu guards: the place among the idle or the surplus ones, the calls, and
	// what the client has not taken yet.
	place *list.Element
	calls int
	held  map[*memory.Grant]struct{}
	gone  bool
}

// connAddr finds the connection of a call.
type connAddr struct {
	net.Addr
	conn *conn
}

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return connAddr{c.Conn.RemoteAddr(), c} }

// connOf is the connection of a call, or nil if it did not come through a Listener.
func connOf(ctx context.Context) *conn {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	a, ok := p.Addr.(connAddr)
	if !ok {
		return nil
	}
	return a.conn
}

// SyscallConn implements syscall.Conn.
func (c *conn) SyscallConn() (syscall.RawConn, error) {
	raw, ok := c.Conn.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return raw.SyscallConn()
}

// byListener are the credentials of the listener that a connection came through.
type byListener struct {
	credentials.TransportCredentials
}

func newByListener() byListener { return byListener{insecure.NewCredentials()} }

// ServerHandshake implements credentials.TransportCredentials.
func (b byListener) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if c, ok := raw.(*conn); ok && c.list.Credentials != nil {
		return c.list.Credentials.ServerHandshake(raw)
	}
	return b.TransportCredentials.ServerHandshake(raw)
}

// Clone implements credentials.TransportCredentials.
func (b byListener) Clone() credentials.TransportCredentials { return b }

// begin and end count a call.
func (c *conn) begin() {
	c.list.mu.Lock()
	defer c.list.mu.Unlock()
	if c.calls++; c.calls == 1 && c.beyond == nil && c.place != nil {
		c.list.idle.Remove(c.place)
		c.place = nil
	}
}

func (c *conn) end() {
	c.list.mu.Lock()
	defer c.list.mu.Unlock()
	if c.calls--; c.calls == 0 && c.beyond == nil && !c.gone {
		c.place = c.list.idle.PushBack(c)
	}
}

// hold keeps a part of a budget for as long as the client is connected, or until it is
// released.
func (c *conn) hold(g *memory.Grant) {
	c.list.mu.Lock()
	defer c.list.mu.Unlock()
	if c.held == nil {
		c.held = map[*memory.Grant]struct{}{}
	}
	c.held[g] = struct{}{}
}

func (c *conn) release(g *memory.Grant) {
	c.list.mu.Lock()
	delete(c.held, g)
	c.list.mu.Unlock()
	g.Release()
}

// shut closes the connection where it is not of interest how.
func (c *conn) shut() { _ = c.Close() }

// Close implements net.Conn.
func (c *conn) Close() error {
	c.closed.Do(func() {
		l := c.list
		l.mu.Lock()
		c.gone = true
		if c.place != nil && c.beyond != nil {
			l.surplus.Remove(c.place)
		} else if c.place != nil {
			l.idle.Remove(c.place)
		}
		c.place = nil
		if c.beyond == nil {
			l.open--
			if l.clients[c.client]--; l.clients[c.client] == 0 {
				delete(l.clients, c.client)
			}
		}
		held := c.held
		c.held = nil
		l.mu.Unlock()
		l.counts.open.Add(-1)
		for g := range held {
			g.Release()
		}
		c.err = c.Conn.Close()
	})
	return c.err
}
