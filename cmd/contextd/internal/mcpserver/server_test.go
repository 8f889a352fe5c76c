package mcpserver_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
	"go.yaml.in/yaml/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/contextd/contextd/cmd/contextd/internal/auth"
	"github.com/contextd/contextd/cmd/contextd/internal/mcpserver"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// daemon answers every call with the call's session, or fails.
type daemon struct {
	contextdv1.ContextServiceClient
	err error
}

func (d daemon) CallRecallTool(_ context.Context, req *contextdv1.CallRecallToolRequest, _ ...grpc.CallOption) (*contextdv1.CallRecallToolResponse, error) {
	return &contextdv1.CallRecallToolResponse{Text: req.GetSessionId() + " " + req.GetName() + " " + string(req.GetArgumentsJson())}, d.err
}

const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"recall","arguments":{"pointer":"ctx:1.0"}}}`

// TestHTTP: whether a request over HTTP is accepted depends on its credentials, its origin and its session.
func TestHTTP(t *testing.T) {
	token, entry, err := auth.NewToken("host", "")
	if err != nil {
		t.Fatal(err)
	}
	listed, err := yaml.Marshal([]auth.TokenEntry{entry})
	if err != nil {
		t.Fatal(err)
	}
	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(tokens, listed, 0o600); err != nil {
		t.Fatal(err)
	}
	header := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Set(pairs[i], pairs[i+1])
		}
		return h
	}
	for name, c := range map[string]struct {
		tokens, session, host string
		method                string
		header                http.Header
		status                int
		body                  string
	}{
		"a session by its header":   {header: header("Contextd-Session", "a"), status: 200, body: `a recall {\"pointer\":\"ctx:1.0\"}`},
		"the one that is served":    {session: "b", status: 200, body: `b recall `},
		"the same by its header":    {session: "b", header: header("Contextd-Session", "b"), status: 200, body: `b recall `},
		"another one":               {session: "b", header: header("Contextd-Session", "a"), status: 403, body: "another session"},
		"none":                      {status: 400, body: "the header Contextd-Session must name the session"},
		"a page of another origin":  {session: "b", header: header("Origin", "https://example.org"), status: 403, body: "cross-origin"},
		"a page, by what it says":   {session: "b", header: header("Sec-Fetch-Site", "cross-site"), status: 403, body: "cross-origin"},
		"a name bound to loopback":  {session: "b", host: "example.org", status: 403, body: "Host"},
		"localhost":                 {session: "b", host: "localhost:80", status: 200, body: `b recall `},
		"no token":                  {tokens: tokens, session: "b", status: 401, body: "no bearer token"},
		"another token":             {tokens: tokens, session: "b", header: header("Authorization", "Bearer x"), status: 401, body: "not known"},
		"a token":                   {tokens: tokens, session: "b", header: header("Authorization", "Bearer "+token), status: 200, body: `b recall `},
		"a stream of notifications": {session: "b", method: http.MethodGet, status: 405},
	} {
		t.Run(name, func(t *testing.T) {
			callers, err := auth.New(auth.Options{TokenFile: c.tokens}, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer callers.Close()
			server := httptest.NewServer(callers.Handler(mcpserver.HTTP(daemon{}, c.session, "test")))
			defer server.Close()
			method := c.method
			if method == "" {
				method = http.MethodPost
			}
			req, err := http.NewRequestWithContext(t.Context(), method, server.URL+"/mcp", strings.NewReader(call))
			if err != nil {
				t.Fatal(err)
			}
			for name, values := range c.header {
				req.Header[name] = values
			}
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Accept", "application/json, text/event-stream")
			req.Host = c.host
			resp, err := server.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != c.status || !strings.Contains(string(body), c.body) {
				t.Errorf("%d %s (%v)", resp.StatusCode, body, err)
			}
		})
	}
}

// TestFailures: errors of the daemon are reported to the model.
func TestFailures(t *testing.T) {
	for code, want := range map[codes.Code]string{
		codes.Unavailable:      "cannot be read now (why); try once more later",
		codes.NotFound:         "[contextd: why: its harness has appended nothing yet, or these tools were started for a session of another name; tell the user",
		codes.PermissionDenied: "cannot be read: why; go on without it",
		codes.Unimplemented:    "older than this program",
	} {
		here, there := mcp.NewInMemoryTransports()
		served, err := mcpserver.New(daemon{err: status.Error(code, "why")}, "s", "test").Connect(t.Context(), here, nil)
		if err != nil {
			t.Fatal(err)
		}
		session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), there, nil)
		if err != nil {
			t.Fatal(err)
		}
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "explain", Arguments: map[string]any{"text": "x"}})
		if err != nil || !result.IsError || !strings.Contains(result.Content[0].(*mcp.TextContent).Text, want) {
			t.Errorf("%v: %v, %v", code, result, err)
		}
		if err := session.Close(); err != nil {
			t.Error(err)
		}
		if err := served.Wait(); err != nil {
			t.Error(err)
		}
	}
}

// TestServe: a server stops when it is asked to, after finishing requests that have begun.
func TestServe(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	begun, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- mcpserver.Serve(ctx, l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(begun)
			<-ctx.Done()
			_, _ = io.WriteString(w, "done")
		}))
	}()
	answered := make(chan string, 1)
	go func() {
		resp, err := http.Get("http://" + l.Addr().String()) //nolint:noctx // it ends with the server
		if err != nil {
			answered <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		answered <- string(body)
	}()
	<-begun
	stop()
	if body, err := <-answered, <-ended; body != "done" || err != nil {
		t.Errorf("the request got %q, and the server ended with %v", body, err)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}
