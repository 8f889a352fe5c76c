package pgtest

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// Proxy is between clients, on the loopback interface, and a server. It can fail as a network does.
type Proxy struct {
	listener net.Listener
	running  sync.WaitGroup
	flowing  sync.RWMutex // held by each that passes bytes on, and while nothing passes by Stall

	mu     sync.Mutex
	server *Server
	conns  map[net.Conn]bool
	loses  func(request []byte) bool // whether its answer is lost; nil for none
}

// NewProxy starts a proxy to a server.
func NewProxy(server *Server) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: listener, server: server, conns: map[net.Conn]bool{}}
	p.running.Go(p.accept)
	return p, nil
}

// DSN returns the server's address through the proxy, for a role.
func (p *Proxy) DSN(role string) string {
	return fmt.Sprintf("host=127.0.0.1 port=%d user=%s dbname=postgres sslmode=disable", p.listener.Addr().(*net.TCPAddr).Port, role)
}

// Point directs new connections to another server.
func (p *Proxy) Point(to *Server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.server = to
}

// Cut ends all connections. With reset it resets them.
func (p *Proxy) Cut(reset bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		if tcp, ok := conn.(*net.TCPConn); ok && reset {
			_ = tcp.SetLinger(0) // else it is closed in the usual way
		}
		_ = conn.Close()
	}
}

// Stall stops all traffic until the caller calls resume.
func (p *Proxy) Stall() (resume func()) {
	p.flowing.Lock()
	return p.flowing.Unlock
}

// Lose drops the answers, and the connection, of the requests for which loses returns true. It calls loses for one
// request at a time, with as much of it as arrived at once. The server carries the request out.
func (p *Proxy) Lose(loses func(request []byte) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.loses = loses
}

// Stop ends the proxy.
func (p *Proxy) Stop() {
	_ = p.listener.Close()
	p.Cut(false)
	p.running.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		server, err := net.Dial("unix", filepath.Join(p.server.dir, ".s.PGSQL.5432"))
		if err != nil {
			_ = client.Close()
		} else {
			p.conns[client], p.conns[server] = true, true
			losing := &atomic.Bool{}
			p.running.Go(func() { p.pass(client, server, requests{p, server, losing}) })
			p.running.Go(func() { p.pass(server, client, answers{client, losing}) })
		}
		p.mu.Unlock()
	}
}

// pass forwards bytes until one side has ended.
func (p *Proxy) pass(from, to net.Conn, through io.Writer) {
	_, _ = io.Copy(gated{p, through}, from) // how it ends says nothing
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range []net.Conn{from, to} {
		_ = conn.Close()
		delete(p.conns, conn)
	}
}

type gated struct {
	p  *Proxy
	to io.Writer
}

func (g gated) Write(b []byte) (int, error) {
	g.p.flowing.RLock()
	defer g.p.flowing.RUnlock()
	return g.to.Write(b)
}

// requests handles the bytes that a client sends.
type requests struct {
	p      *Proxy
	to     io.Writer
	losing *atomic.Bool
}

func (r requests) Write(b []byte) (int, error) {
	r.p.mu.Lock()
	if r.p.loses != nil && r.p.loses(b) {
		r.losing.Store(true)
	}
	r.p.mu.Unlock()
	return r.to.Write(b)
}

// answers handles the bytes that a server sends. The server writes the last message of an answer, which says that it
// is ready, in one piece with the messages before it.
type answers struct {
	to     io.Writer
	losing *atomic.Bool
}

func (a answers) Write(b []byte) (int, error) {
	switch ready := []byte("Z\x00\x00\x00\x05"); {
	case !a.losing.Load():
		return a.to.Write(b)
	case len(b) > len(ready) && bytes.Equal(b[len(b)-len(ready)-1:len(b)-1], ready):
		return 0, io.ErrClosedPipe // now the server has carried it out
	}
	return len(b), nil
}
