package inspect_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/contextd/contextd/cmd/contextd/internal/inspect"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// api answers some methods, and records the tokens of calls.
type api struct {
	contextdv1.UnimplementedContextServiceServer
	tokens chan []string
}

func (a *api) GetSession(ctx context.Context, req *contextdv1.GetSessionRequest) (*contextdv1.GetSessionResponse, error) {
	a.tokens <- metadata.ValueFromIncomingContext(ctx, "authorization")
	if req.GetSessionId() == "none" {
		refused, err := status.New(codes.NotFound, "session \"none\" does not exist").WithDetails(&errdetails.ErrorInfo{Reason: "NOT_FOUND"})
		if err != nil {
			return nil, err
		}
		return nil, refused.Err()
	}
	return &contextdv1.GetSessionResponse{Session: &contextdv1.Session{SessionId: req.GetSessionId()}}, nil
}

func (a *api) ReadEvents(_ *contextdv1.ReadEventsRequest, stream grpc.ServerStreamingServer[contextdv1.ReadEventsResponse]) error {
	for i := range 3 {
		if err := stream.Send(&contextdv1.ReadEventsResponse{Tokens: []uint32{uint32(i)}}); err != nil {
			return err
		}
	}
	return status.Error(codes.DataLoss, "the rest is damaged")
}

// serve serves the page of an api at an address of its own.
func serve(t *testing.T, o inspect.Options) (*httptest.Server, *api) {
	t.Helper()
	conn, a := connected(t)
	o.API = conn
	page := httptest.NewServer(inspect.NewHandler(o))
	t.Cleanup(page.Close)
	return page, a
}

// connected is a connection to an api.
func connected(t *testing.T) (*grpc.ClientConn, *api) {
	t.Helper()
	a := &api{tokens: make(chan []string, 8)}
	l := bufconn.Listen(1 << 16)
	server := grpc.NewServer()
	contextdv1.RegisterContextServiceServer(server, a)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient("passthrough:///x", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn, a
}

func do(t *testing.T, method, url string, header map[string]string) (status int, answered http.Header, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	if host := header["Host"]; host != "" {
		req.Host = host
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(content)
}

const getSession = contextdv1.ContextService_GetSession_FullMethodName

func TestWhoIsAnswered(t *testing.T) {
	json := map[string]string{"Content-Type": "application/json"}
	with := func(more ...string) map[string]string {
		out := map[string]string{"Content-Type": "application/json"}
		for i := 0; i < len(more); i += 2 {
			out[more[i]] = more[i+1]
		}
		return out
	}
	for name, c := range map[string]struct {
		options inspect.Options
		method  string
		path    string
		header  map[string]string
		want    int
	}{
		"a call":                       {path: getSession, header: json, want: http.StatusOK},
		"a call by its own page":       {path: getSession, header: with("Sec-Fetch-Site", "same-origin"), want: http.StatusOK},
		"a call by another site":       {path: getSession, header: with("Sec-Fetch-Site", "cross-site"), want: http.StatusForbidden},
		"a call by another port":       {path: getSession, header: with("Sec-Fetch-Site", "same-site"), want: http.StatusForbidden},
		"a call by an old browser":     {path: getSession, header: with("Origin", "https://evil.example"), want: http.StatusForbidden},
		"a form":                       {path: getSession, header: map[string]string{"Content-Type": "text/plain"}, want: http.StatusUnsupportedMediaType},
		"a method that writes":         {path: contextdv1.ContextService_AppendEvents_FullMethodName, header: json, want: http.StatusNotFound},
		"a deletion":                   {path: contextdv1.ContextService_DeleteSession_FullMethodName, header: json, want: http.StatusNotFound},
		"reflection":                   {path: "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", header: json, want: http.StatusNotFound},
		"another verb":                 {method: http.MethodPut, path: "/", want: http.StatusMethodNotAllowed},
		"the page":                     {method: http.MethodGet, path: "/", want: http.StatusOK},
		"a place in the page":          {method: http.MethodGet, path: "/session/a%2Fb/call/p1-0001", want: http.StatusOK},
		"no file outside":              {method: http.MethodGet, path: "/assets/../../inspect.go", want: http.StatusBadRequest},
		"a script that is not there":   {method: http.MethodGet, path: "/assets/none.js", want: http.StatusNotFound},
		"localhost":                    {options: inspect.Options{Loopback: true}, path: getSession, header: with("Host", "localhost:1"), want: http.StatusOK},
		"IPv6":                         {options: inspect.Options{Loopback: true}, path: getSession, header: with("Host", "[::1]:1"), want: http.StatusOK},
		"a name that leads here":       {options: inspect.Options{Loopback: true}, path: getSession, header: with("Host", "evil.example"), want: http.StatusMisdirectedRequest},
		"the page under such a name":   {options: inspect.Options{Loopback: true}, method: http.MethodGet, path: "/", header: with("Host", "evil.example:80"), want: http.StatusMisdirectedRequest},
		"a name where others reach it": {path: getSession, header: with("Host", "contextd.example"), want: http.StatusOK},
		"no token":                     {options: inspect.Options{Token: "secret"}, path: getSession, header: json, want: http.StatusUnauthorized},
		"another token":                {options: inspect.Options{Token: "secret"}, path: getSession, header: with("Authorization", "Bearer secre"), want: http.StatusUnauthorized},
		"the token":                    {options: inspect.Options{Token: "secret"}, path: getSession, header: with("Authorization", "Bearer secret"), want: http.StatusOK},
		"the page without a token":     {options: inspect.Options{Token: "secret"}, method: http.MethodGet, path: "/", want: http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			page, _ := serve(t, c.options)
			if c.method == "" {
				c.method = http.MethodPost
			}
			status, answered, body := do(t, c.method, page.URL+c.path, c.header)
			if status != c.want {
				t.Errorf("status %d, want %d: %s", status, c.want, body)
			}
			csp := answered.Get("Content-Security-Policy")
			for _, directive := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"} {
				if !strings.Contains(csp, directive) {
					t.Errorf("the policy %q is without %s", csp, directive)
				}
			}
			if strings.Contains(csp, "unsafe") || answered.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("headers %v", answered)
			}
		})
	}
}

func TestTokensGoToTheAPIUnlessTheyAreThePages(t *testing.T) {
	for name, c := range map[string]struct {
		options inspect.Options
		want    int
	}{"a daemon's": {inspect.Options{}, 1}, "the page's": {inspect.Options{Token: "t"}, 0}} {
		t.Run(name, func(t *testing.T) {
			page, a := serve(t, c.options)
			do(t, http.MethodPost, page.URL+getSession, map[string]string{"Content-Type": "application/json", "Authorization": "Bearer t"})
			if got := <-a.tokens; len(got) != c.want {
				t.Errorf("the API got the tokens %v", got)
			}
		})
	}
}

func TestErrorsKeepTheirDetails(t *testing.T) {
	page, _ := serve(t, inspect.Options{})
	client := connect.NewClient[contextdv1.GetSessionRequest, contextdv1.GetSessionResponse](http.DefaultClient, page.URL+getSession)
	_, err := client.CallUnary(t.Context(), connect.NewRequest(&contextdv1.GetSessionRequest{SessionId: "none"}))
	refused, ok := errors.AsType[*connect.Error](err)
	if !ok || refused.Code() != connect.CodeNotFound || refused.Message() != "session \"none\" does not exist" || len(refused.Details()) != 1 {
		t.Errorf("got %v", err)
	}
}

func TestStreamsEndInTheirErrors(t *testing.T) {
	page, _ := serve(t, inspect.Options{})
	for _, protocol := range []connect.ClientOption{connect.WithProtoJSON(), connect.WithGRPCWeb()} {
		client := connect.NewClient[contextdv1.ReadEventsRequest, contextdv1.ReadEventsResponse](http.DefaultClient, page.URL+contextdv1.ContextService_ReadEvents_FullMethodName, protocol)
		stream, err := client.CallServerStream(t.Context(), connect.NewRequest(&contextdv1.ReadEventsRequest{SessionId: "s"}))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for stream.Receive() {
			n++
		}
		if refused, ok := errors.AsType[*connect.Error](stream.Err()); n != 3 || !ok || refused.Code() != connect.CodeDataLoss {
			t.Errorf("%d answers, then %v", n, stream.Err())
		}
	}
}

func TestLogsAreNotFollowed(t *testing.T) {
	page, _ := serve(t, inspect.Options{})
	client := connect.NewClient[contextdv1.ReadEventsRequest, contextdv1.ReadEventsResponse](http.DefaultClient, page.URL+contextdv1.ContextService_ReadEvents_FullMethodName)
	stream, err := client.CallServerStream(t.Context(), connect.NewRequest(&contextdv1.ReadEventsRequest{SessionId: "s", Follow: true}))
	if err != nil {
		t.Fatal(err)
	}
	if more := stream.Receive(); more || connect.CodeOf(stream.Err()) != connect.CodeInvalidArgument {
		t.Errorf("got an answer: %t, %v", more, stream.Err())
	}
}

// TestPageIsSmall bounds what a browser loads.
func TestPageIsSmall(t *testing.T) {
	const most = 300_000
	var size bytes.Buffer
	zip := gzip.NewWriter(&size)
	err := fs.WalkDir(os.DirFS("dist"), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile("dist/" + path)
		if err != nil {
			return err
		}
		// A URL with a host would make the browser ask another host.
		if strings.HasSuffix(path, ".html") && strings.Contains(string(content), "//") {
			t.Errorf("%s names another host", path)
		}
		_, err = zip.Write(content)
		return errors.Join(err, zip.Flush())
	})
	if err := errors.Join(err, zip.Close()); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes compressed", size.Len())
	if size.Len() > most {
		t.Errorf("the page is %d bytes compressed, more than %d", size.Len(), most)
	}
}
