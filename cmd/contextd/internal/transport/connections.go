package transport

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
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

// surplusConnections is how many connections are accepted beyond the limit, but no more than the limit itself. Only
// health checks are served on them; other calls are refused with the reason.
const surplusConnections = 16

// Within returns the limit for a listener that may use this many file descriptors.
func Within(descriptors uint64) uint64 {
	return max(descriptors-min(descriptors, surplusConnections), descriptors/2, 1)
}

// logEvery is the shortest time between two log lines about the same kind of trouble with connections.
const logEvery = 10 * time.Second

// ConnectionCounts are numbers of connections: those open now, and those since the start.
type ConnectionCounts struct{ Open, Accepted, Refused, Evicted int64 }

// ConnectionLimits limit the connections that may be open, in all and for each client.
type ConnectionLimits struct {
	Max, MaxPerClient uint64
	// LeastIdle is how long a client must have had no call before another may take its place.
	LeastIdle time.Duration
}

// Listener bounds how many clients are connected. If there are too many, it disconnects the one without a call for
// the longest time, which may connect again.
type Listener struct {
	net.Listener
	// Credentials, if set, identify clients. Set it before the first connection is accepted.
	Credentials credentials.TransportCredentials
	// Client, if set, returns the name of the client that connects, or "" if it is unknown.
	Client func(net.Conn) string

	limits ConnectionLimits
	logger *slog.Logger

	mu sync.Mutex
	// idle are the connections without a call, the longest idle first; surplus are those beyond the limit, the oldest
	// first.
	idle, surplus *list.List
	open          uint64            // those within the limit
	clients       map[string]uint64 // of these, by client

	counts struct{ open, accepted, refused, evicted atomic.Int64 }

	logMu  sync.Mutex
	logged map[string]time.Time
	muted  map[string]int
}

// Limited returns a listener with these limits.
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

// Accept implements net.Listener. A temporary error, such as too few file descriptors, disconnects the client that
// was idle for longest; gRPC then calls Accept again.
func (l *Listener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			l.warn("there are no file descriptors for another connection", "error", err)
			l.evict("max_connections", 0, func(*conn) bool { return true })
		}
		return nil, err
	}
	l.counts.accepted.Add(1)
	l.counts.open.Add(1)
	c := &conn{Conn: raw, list: l, client: l.clientOf(raw)}
	c.caller = cmp.Or(c.client, fmt.Sprintf("connection %p", c))
	beyond := l.admit(c)
	if beyond == nil {
		return c, nil
	}
	l.counts.refused.Add(1)
	l.warn("all connections are in use by calls; another may check the health only", "setting", beyond.Setting, "limit", beyond.Limit)
	if oldest := l.pushSurplus(c); oldest != nil {
		oldest.shut()
	}
	return c, nil
}

// pushSurplus adds a connection beyond the limit, and returns the oldest of them if there are too many.
func (l *Listener) pushSurplus(c *conn) *conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.place = l.surplus.PushBack(c)
	if uint64(l.surplus.Len()) <= min(surplusConnections, l.limits.Max) {
		return nil
	}
	oldest := l.surplus.Remove(l.surplus.Front()).(*conn)
	oldest.place = nil
	return oldest
}

// clientOf names the client of a connection: as Client does, or else by its machine. On this machine, where several
// clients may run, it returns "".
func (l *Listener) clientOf(raw net.Conn) string {
	if l.Client != nil {
		return l.Client(raw)
	}
	if a, ok := raw.RemoteAddr().(*net.TCPAddr); ok && !a.IP.IsLoopback() {
		return a.IP.String()
	}
	return ""
}

// admit gives a connection a place within the limits, if necessary by evicting an idle one. If it cannot, it returns
// the limit that was reached.
func (l *Listener) admit(c *conn) *fair.BusyError {
	beyond := l.tryAdmit(c)
	if beyond == nil {
		return nil
	}
	makesRoom := func(idle *conn) bool { return l.full(c.client, idle) == nil }
	if l.evict(beyond.Setting, l.limits.LeastIdle, makesRoom) {
		return l.tryAdmit(c)
	}
	return beyond
}

func (l *Listener) tryAdmit(c *conn) *fair.BusyError {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.admitted.Load() || c.gone {
		return nil
	}
	if beyond := l.full(c.client, nil); beyond != nil {
		return beyond
	}
	if c.place != nil {
		l.surplus.Remove(c.place)
		c.place = nil
	}
	l.open++
	l.clients[c.client]++
	c.admitted.Store(true)
	if c.calls == 0 {
		c.rest()
	}
	return nil
}

// full returns the limit that would refuse one more connection of a client after the connection `but` was closed; nil if
// none would. The caller holds the lock.
func (l *Listener) full(client string, but *conn) *fair.BusyError {
	open, own := l.open, l.clients[client]
	if but != nil {
		open--
		if but.client == client {
			own--
		}
	}
	switch {
	case client == "":
		own = 0 // each of them may be another
	case own >= l.limits.MaxPerClient:
		return &fair.BusyError{Setting: "max_client_connections", Limit: l.limits.MaxPerClient, RetryAfter: fair.RetryAfter}
	}
	if !hasRoom(l.limits.Max, open, own) {
		return &fair.BusyError{Setting: "max_connections", Limit: l.limits.Max, RetryAfter: fair.RetryAfter}
	}
	return nil
}

// evict disconnects the longest idle client for which may is true, if it was idle for at least least. It reports
// whether it found one.
func (l *Listener) evict(setting string, least time.Duration, may func(*conn) bool) bool {
	l.mu.Lock()
	var found *conn
	for place := l.idle.Front(); place != nil && found == nil; place = place.Next() {
		c := place.Value.(*conn)
		if time.Since(c.idleSince) < least {
			break // as those after it
		}
		if may(c) {
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

// warn logs a message, at most once every logEvery for each kind.
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
	// caller is the caller of calls that do not name one themselves.
	caller string
	// admitted is true within the limits; otherwise only health checks are served.
	admitted atomic.Bool
	closed   sync.Once
	err      error

	// Guarded by list.mu: the place in the list of idle or surplus connections, the calls, and the memory of
	// answers that the client has not received yet.
	place     *list.Element
	idleSince time.Time
	calls     int
	held      map[*memory.Grant]struct{}
	gone      bool
}

// connAddr is a remote address that also has its connection, so that a call can find it.
type connAddr struct {
	net.Addr
	conn *conn
}

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return connAddr{c.Conn.RemoteAddr(), c} }

// connOf returns the connection of a call, or nil if it did not come through a Listener.
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

// byListener chooses the credentials of the listener that accepted the connection.
type byListener struct {
	credentials.TransportCredentials
}

func newByListener() byListener { return byListener{insecure.NewCredentials()} }

// ServerHandshake implements credentials.TransportCredentials.
func (b byListener) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if c, ok := raw.(*conn); ok && c.list.Credentials != nil {
		secured, who, err := c.list.Credentials.ServerHandshake(raw)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, net.ErrClosed) { // who only looks sends nothing
			c.list.warn("a client was refused by its handshake", "peer.address", c.Conn.RemoteAddr().String(), "error", err)
		}
		return secured, who, err
	}
	return b.TransportCredentials.ServerHandshake(raw)
}

// Clone implements credentials.TransportCredentials.
func (b byListener) Clone() credentials.TransportCredentials { return b }

// begin and end count a call.
func (c *conn) begin() {
	c.list.mu.Lock()
	defer c.list.mu.Unlock()
	if c.calls++; c.calls == 1 && c.admitted.Load() && c.place != nil {
		c.list.idle.Remove(c.place)
		c.place = nil
	}
}

func (c *conn) end() {
	c.list.mu.Lock()
	defer c.list.mu.Unlock()
	if c.calls--; c.calls == 0 && c.admitted.Load() && !c.gone {
		c.rest()
	}
}

// rest puts a connection without a call into the list of idle ones. The caller holds the lock.
func (c *conn) rest() {
	c.place, c.idleSince = c.list.idle.PushBack(c), time.Now()
}

// hold keeps a grant until it is released, or else until the client disconnects.
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

// shut closes the connection and ignores the error.
func (c *conn) shut() { _ = c.Close() }

// Close implements net.Conn.
func (c *conn) Close() error {
	c.closed.Do(func() {
		l := c.list
		l.mu.Lock()
		c.gone = true
		of := l.surplus
		if c.admitted.Load() {
			of = l.idle
		}
		if c.place != nil {
			of.Remove(c.place)
		}
		c.place = nil
		if c.admitted.Load() {
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
