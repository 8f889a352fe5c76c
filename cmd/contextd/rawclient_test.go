package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// peak is the most memory that the process ever held, in bytes.
func (p *process) peak(t testing.TB) uint64 {
	t.Helper()
	return p.statusOf(t, "VmHWM:")
}

// statusOf is a field of the process's /proc status, in bytes.
func (p *process) statusOf(t testing.TB, field string) uint64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("SKIPPED: no /proc to read the memory of a process from; this needs Linux")
	}
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, field); ok {
			n, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	t.Fatalf("the process has ended\n%s", p.log)
	return 0
}

// raw is an HTTP/2 client without a library, so that it can violate the protocol.
type raw struct {
	net.Conn
	framer  *http2.Framer
	headers bytes.Buffer
	encoder *hpack.Encoder
	mu      sync.Mutex
	window  map[uint32]int // how many bytes the server accepts by stream; 0 is the connection
	changed chan struct{}
	// answered is closed once the first answer begins, or the connection has ended.
	answered chan struct{}
}

// dialRaw connects and sets up HTTP/2.
func (p *process) dialRaw(t testing.TB) *raw {
	t.Helper()
	conn, err := net.Dial("unix", p.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	r := &raw{Conn: conn, framer: http2.NewFramer(conn, conn), window: map[uint32]int{0: 65535}, changed: make(chan struct{}, 1), answered: make(chan struct{})}
	r.encoder = hpack.NewEncoder(&r.headers)
	if _, err := conn.Write([]byte(http2.ClientPreface)); err != nil {
		t.Fatal(err)
	}
	if err := r.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}); err != nil {
		t.Fatal(err)
	}
	go r.read()
	return r
}

// read sends required answers to frames, and records the server's flow-control windows.
func (r *raw) read() {
	answered := sync.OnceFunc(func() { close(r.answered) })
	defer answered()
	for {
		frame, err := r.framer.ReadFrame()
		if err != nil {
			return
		}
		r.mu.Lock()
		switch f := frame.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				_ = r.framer.WriteSettingsAck()
			}
		case *http2.PingFrame:
			if !f.IsAck() {
				_ = r.framer.WritePing(true, f.Data)
			}
		case *http2.HeadersFrame:
			answered()
		case *http2.WindowUpdateFrame:
			r.window[f.StreamID] += int(f.Increment)
		}
		r.mu.Unlock()
		select {
		case r.changed <- struct{}{}:
		default:
		}
	}
}

// call opens a stream for a method.
func (r *raw) call(stream uint32, method string, headers ...[2]string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open(stream, method, headers...)
}

// open is call for callers that hold the lock.
func (r *raw) open(stream uint32, method string, headers ...[2]string) error {
	r.headers.Reset()
	for _, h := range append([][2]string{
		{":method", "POST"}, {":scheme", "http"}, {":path", method}, {":authority", "x"},
		{"content-type", "application/grpc"}, {"te", "trailers"},
	}, headers...) {
		if err := r.encoder.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}); err != nil {
			return err
		}
	}
	r.window[stream] = 65535
	return r.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: r.headers.Bytes(), EndHeaders: true})
}

// send sends as much of the data as the server accepts, in frames of so many bytes. It gives up once the
// server accepts nothing for a while.
func (r *raw) send(stream uint32, data []byte, frame int) {
	for sent := 0; sent < len(data); {
		r.mu.Lock()
		n := min(frame, len(data)-sent, r.window[stream], r.window[0])
		var err error
		if n > 0 {
			err = r.framer.WriteData(stream, false, data[sent:sent+n])
			r.window[stream] -= n
			r.window[0] -= n
		}
		r.mu.Unlock()
		if err != nil {
			return
		}
		if sent += n; n > 0 {
			continue
		}
		select {
		case <-r.changed:
		case <-time.After(500 * time.Millisecond):
			return
		}
	}
}

// floods are kinds of frames that exhaust a server in large numbers. Each function sends the nth. The caller
// holds the lock.
var floods = []func(r *raw, n uint32) error{
	func(r *raw, n uint32) error { // calls that are cancelled at once
		if err := r.open(2*n+1, "/contextd.v1.ContextService/ListSessions"); err != nil {
			return err
		}
		return r.framer.WriteRSTStream(2*n+1, http2.ErrCodeCancel)
	},
	func(r *raw, n uint32) error { return r.framer.WritePing(false, [8]byte{byte(n)}) },
	func(r *raw, n uint32) error {
		return r.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: n % 2})
	},
	func(r *raw, n uint32) error { // headers that never end
		if n == 0 {
			return r.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x82}})
		}
		return r.framer.WriteContinuation(1, false, bytes.Repeat([]byte{0x82}, 16<<10))
	},
	func(r *raw, n uint32) error { // empty data frames without end
		if n == 0 {
			return r.open(1, "/contextd.v1.ContextService/AppendEventStream")
		}
		return r.framer.WriteData(1, false, nil)
	},
	func(r *raw, n uint32) error { return r.framer.WriteWindowUpdate(0, 1) },
	func(r *raw, n uint32) error { return r.framer.WritePriority(2*n+1, http2.PriorityParam{Weight: 1}) },
}

// manyFrames sends floods until the daemon disconnects or accepts no more. Half of the clients read no
// answers.
func manyFrames(t *testing.T, p *process, size attackSize) {
	while := 2 * time.Second
	if inFull() {
		while = 10 * time.Second
	}
	at(len(floods)*2*max(size.clients/16, 1), func(i int) {
		r := p.dialRaw(t)
		if err := r.SetDeadline(time.Now().Add(while)); err != nil {
			t.Error(err)
		}
		if i%2 == 0 {
			if err := r.SetReadDeadline(time.Now()); err != nil {
				t.Error(err)
			}
		}
		flood := floods[i/2%len(floods)]
		for n := uint32(0); n < 1<<20; n++ {
			r.mu.Lock()
			err := flood(r, n)
			r.mu.Unlock()
			if err != nil {
				return
			}
		}
	})
}
