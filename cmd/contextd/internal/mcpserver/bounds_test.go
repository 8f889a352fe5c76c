package mcpserver_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/contextd/contextd/cmd/contextd/internal/mcpserver"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// busy counts the calls that it has at once, each for a moment.
type busy struct {
	daemon
	mu        *sync.Mutex
	now, most *int
}

func (b busy) CallRecallTool(ctx context.Context, req *contextdv1.CallRecallToolRequest, o ...grpc.CallOption) (*contextdv1.CallRecallToolResponse, error) {
	count := func(by int) {
		b.mu.Lock()
		defer b.mu.Unlock()
		*b.now += by
		*b.most = max(*b.most, *b.now)
	}
	count(1)
	defer count(-1)
	<-time.After(5 * time.Millisecond)
	return b.daemon.CallRecallTool(ctx, req, o...)
}

// batch is so many calls in one request.
func batch(n int) string {
	calls := make([]string, n)
	for i := range calls {
		calls[i] = strings.Replace(call, `"id":1`, fmt.Sprintf(`"id":%d`, i), 1)
	}
	return "[" + strings.Join(calls, ",") + "]"
}

func send(t *testing.T, url, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(answer)
}

// What one request may ask for is bounded, and so is what all ask of the daemon at once.
func TestBounds(t *testing.T) {
	api := busy{mu: &sync.Mutex{}, now: new(int), most: new(int)}
	server := httptest.NewServer(mcpserver.HTTP(api, "s", "test"))
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()
	for name, c := range map[string]struct {
		body   string
		status int
		answer string
	}{
		"a batch":          {batch(32), 200, `"id":31`},
		"a long batch":     {batch(33), 400, "a batch must have at most 32 messages; it has 33"},
		"many batches":     {"[" + strings.Repeat("[],", 80_000) + "[]]", 400, "at most 32 messages"},
		"a long request":   {call + strings.Repeat(" ", 256<<10), 413, "at most 262144 bytes"},
		"no JSON":          {"[", 400, "malformed"},
		"nothing":          {" ", 400, ""},
		"a fraction as id": {strings.Replace(call, `"id":1`, `"id":1.5`, 1), 400, "an id must be a string"},
		"one in a batch":   {strings.Replace(batch(3), `"id":1`, `"id":1.5`, 1), 400, "an id must be a string"},
	} {
		t.Run(name, func(t *testing.T) {
			if status, answer := send(t, server.URL, c.body); status != c.status || !strings.Contains(answer, c.answer) {
				t.Errorf("%d %.200s", status, answer)
			}
		})
	}
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			if status, answer := send(t, server.URL, batch(32)); status != 200 || strings.Count(answer, "s recall") != 32 {
				t.Errorf("%d %.200s", status, answer)
			}
		})
	}
	all.Wait()
	if most := *api.most; most > 64 {
		t.Errorf("%d calls at once", most)
	}
}
