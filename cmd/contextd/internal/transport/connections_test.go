package transport

import (
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// dialed is a listener to which clients with these names connect, one after the other.
type dialed struct {
	net.Listener
	addr  net.Addr
	conns chan net.Conn
}

type namedConn struct {
	net.Conn
	client string
}

func (d dialed) Accept() (net.Conn, error) { return <-d.conns, nil }
func (d dialed) Addr() net.Addr            { return d.addr }

// connect has a client connect to a listener.
func connect(t *testing.T, l *Listener, client string) *conn {
	t.Helper()
	near, far := net.Pipe()
	t.Cleanup(func() { _ = far.Close() })
	l.Listener.(dialed).conns <- namedConn{near, client}
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.(*conn).shut)
	return c.(*conn)
}

func limited(limits ConnectionLimits) *Listener {
	l := Limited(dialed{addr: &net.UnixAddr{Name: "s", Net: "unix"}, conns: make(chan net.Conn, 1)}, limits, slog.New(slog.DiscardHandler))
	l.Client = func(c net.Conn) string { return c.(namedConn).client }
	return l
}

// A client that calls again and again keeps its place, whoever else wants one; one that does not
// call gives way. Who was refused is let in on the same connection.
func TestConnectionsInUseStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limited(ConnectionLimits{Max: 8, MaxPerClient: 2, LeastIdle: time.Second})
		calls, silent := connect(t, l, "a"), connect(t, l, "a")
		late := connect(t, l, "a")
		for range 9 {
			calls.begin()
			calls.end()
			if beyond := l.admit(late); beyond == nil || beyond.Setting != "max_client_connections" {
				t.Fatalf("one more is refused by %v", beyond)
			}
			<-time.After(100 * time.Millisecond) // of the fake clock
		}
		if silent.gone || l.Counts().Evicted != 0 {
			t.Error("a client was disconnected too early")
		}
		<-time.After(100 * time.Millisecond) // of the fake clock
		if beyond := l.admit(late); beyond != nil || !silent.gone || calls.gone {
			t.Errorf("refused: %v; the silent one is gone: %t; the one that calls: %t", beyond, silent.gone, calls.gone)
		}
		calls.shut()
		if next := connect(t, l, "a"); !next.admitted.Load() {
			t.Error("there is a place, and it is not given away")
		}
	})
}

// Nobody is disconnected for a client that is refused all the same, since what is left is for
// others.
func TestNobodyIsDisconnectedInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limited(ConnectionLimits{Max: 8, MaxPerClient: 8})
		for _, client := range []string{"a", "a", "a", "b", "c", "d", "e"} {
			if c := connect(t, l, client); !c.admitted.Load() {
				t.Fatalf("%s is refused", client)
			}
		}
		if c := connect(t, l, "a"); c.admitted.Load() {
			t.Error("a client got what is for others")
		}
		if n := l.Counts().Evicted; n != 0 {
			t.Errorf("%d clients were disconnected", n)
		}
		if c := connect(t, l, "f"); !c.admitted.Load() {
			t.Error("another client is refused")
		}
	})
}
