package inspect_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/contextd/contextd/cmd/contextd/internal/inspect"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// large is an answer that is larger than the network's buffers.
var large = strings.Repeat("large ", 8<<20/6)

func (a *api) ResolvePointer(context.Context, *contextdv1.ResolvePointerRequest) (*contextdv1.ResolvePointerResponse, error) {
	return &contextdv1.ResolvePointerResponse{Block: &contextdv1.Block{Kind: &contextdv1.Block_Text{Text: &contextdv1.Text{Text: large}}}}, nil
}

// ask sends a call of a unary method without reading the answer.
func ask(t *testing.T, address, method string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnect-Timeout-Ms: 2000\r\nContent-Length: 2\r\n\r\n{}", method)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestRequestsThatDoNotArrive: a browser that does not send all of its request gets an answer in time. An answer that
// takes longer than that is not cut off.
func TestRequestsThatDoNotArrive(t *testing.T) {
	page, a := serve(t, inspect.Options{SendTimeout: 50 * time.Millisecond})
	conn, err := net.Dial("tcp", page.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{", getSession); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusRequestTimeout {
		t.Errorf("status %d", answer.StatusCode)
	}
	header := map[string]string{"Content-Type": "application/json"}
	if status, _, body := do(t, http.MethodPost, page.URL+getSession, header); status != http.StatusOK {
		t.Errorf("a whole request: status %d, %s", status, body)
	}
	<-a.tokens
}

// TestAnswersThatNobodyTakes: memory for answers that are not read is reserved for a few browsers only. Calls
// of further browsers fail, and succeed once the first ones have gone.
func TestAnswersThatNobodyTakes(t *testing.T) {
	page, _ := serve(t, inspect.Options{})
	type answered struct {
		conn net.Conn
		line string
	}
	answers := make(chan answered)
	const browsers = 12
	for range browsers {
		conn := ask(t, page.Listener.Addr().String(), contextdv1.ContextService_ResolvePointer_FullMethodName)
		go func() {
			line := make([]byte, len("HTTP/1.1 200"))
			_, _ = io.ReadFull(conn, line)
			answers <- answered{conn, string(line)}
		}()
	}
	var held []net.Conn
	for range browsers {
		a := <-answers
		if a.line == "HTTP/1.1 200" {
			held = append(held, a.conn)
		}
	}
	if len(held) == 0 || len(held) > 4 {
		t.Errorf("%d of %d answers are held", len(held), browsers)
	}
	for _, conn := range held {
		_ = conn.Close()
	}
	client := connect.NewClient[contextdv1.ResolvePointerRequest, contextdv1.ResolvePointerResponse](http.DefaultClient, page.URL+contextdv1.ContextService_ResolvePointer_FullMethodName)
	if _, err := client.CallUnary(t.Context(), connect.NewRequest(&contextdv1.ResolvePointerRequest{})); err != nil {
		t.Error(err)
	}
}

// TestAnswersAreTakenInTime: a connection is closed if its answer is not read in time.
func TestAnswersAreTakenInTime(t *testing.T) {
	api, _ := connected(t)
	server := inspect.NewServer(inspect.Options{API: api, SendTimeout: 50 * time.Millisecond})
	closed := make(chan struct{}, 1)
	server.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			closed <- struct{}{}
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	ask(t, l.Addr().String(), contextdv1.ContextService_ResolvePointer_FullMethodName)
	<-closed // although nothing was read
}
