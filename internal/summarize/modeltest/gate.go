package modeltest

import (
	"context"
	"net"
	"sync"
	"syscall"
)

// memoryAddress is the address of a server in memory. The name resolves nowhere.
type memoryAddress string

func (memoryAddress) Network() string  { return "memory" }
func (a memoryAddress) String() string { return string(a) }

// gate is a listener that can refuse connections for a while and keep its address. It listens on loopback, or in
// memory, where only its own dial reaches it.
type gate struct {
	address net.Addr
	conns   chan net.Conn
	closed  chan struct{}
	close   sync.Once

	mu    sync.Mutex
	up    bool
	inner net.Listener // nil while down and in memory
	wg    sync.WaitGroup
}

func newGate(memory bool) (*gate, error) {
	g := &gate{conns: make(chan net.Conn), closed: make(chan struct{}), up: true}
	if memory {
		g.address = memoryAddress("model.invalid")
		return g, nil
	}
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	g.address = inner.Addr()
	g.forward(inner)
	return g, nil
}

// forward passes on the connections that inner accepts, until inner is closed.
func (g *gate) forward(inner net.Listener) {
	g.inner = inner
	g.wg.Go(func() {
		for {
			conn, err := inner.Accept()
			if err != nil {
				return
			}
			select {
			case g.conns <- conn:
			case <-g.closed:
				_ = conn.Close()
				return
			}
		}
	})
}

// set accepts or refuses connections. Existing ones stay.
func (g *gate) set(up bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.up == up {
		return nil
	}
	if _, memory := g.address.(memoryAddress); !memory {
		if up {
			inner, err := net.Listen("tcp", g.address.String())
			if err != nil {
				return err
			}
			g.forward(inner)
		} else {
			_ = g.inner.Close()
			g.inner = nil
		}
	}
	g.up = up
	return nil
}

// dial connects to a gate in memory.
func (g *gate) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	g.mu.Lock()
	up := g.up
	g.mu.Unlock()
	if !up {
		return nil, &net.OpError{Op: "dial", Net: "memory", Addr: g.address, Err: syscall.ECONNREFUSED}
	}
	near, far := net.Pipe()
	select {
	case g.conns <- far:
		return near, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-g.closed:
		return nil, net.ErrClosed
	}
}

// Accept, Close and Addr implement net.Listener.
func (g *gate) Accept() (net.Conn, error) {
	select {
	case conn := <-g.conns:
		return conn, nil
	case <-g.closed:
		return nil, net.ErrClosed
	}
}

func (g *gate) Close() error {
	g.close.Do(func() {
		close(g.closed)
		g.mu.Lock()
		if g.inner != nil {
			_ = g.inner.Close()
		}
		g.mu.Unlock()
		g.wg.Wait()
	})
	return nil
}

func (g *gate) Addr() net.Addr { return g.address }
