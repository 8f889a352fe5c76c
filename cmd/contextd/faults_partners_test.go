package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// endpoints are misbehaving model servers. They count their requests.
func endpoints(t *testing.T, asked *atomic.Int64) map[string]string {
	t.Helper()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a redirect was followed to %s with %q", r.URL, r.Header)
	}))
	t.Cleanup(elsewhere.Close)
	done := make(chan struct{})
	behave := map[string]http.HandlerFunc{
		"endless": func(w http.ResponseWriter, r *http.Request) {
			for chunk := []byte(strings.Repeat(" ", 1<<16)); r.Context().Err() == nil; {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		},
		"dripping": func(w http.ResponseWriter, r *http.Request) {
			for {
				select {
				case <-time.After(50 * time.Millisecond):
				case <-r.Context().Done():
					return
				case <-done:
					return
				}
				_, _ = w.Write([]byte(" "))
				w.(http.Flusher).Flush()
			}
		},
		"silent": func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-done:
			}
		},
		"redirecting": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		},
		"circling": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.String(), http.StatusPermanentRedirect)
		},
		"hanging up": func(w http.ResponseWriter, _ *http.Request) {
			if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
				_ = conn.Close()
			}
		},
	}
	urls := map[string]string{}
	for name, handler := range behave {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			handler(w, r)
		}))
		t.Cleanup(server.Close)
		urls[name] = server.URL
	}
	t.Cleanup(func() { close(done) }) // runs before the servers close
	return urls
}

// TestFaultPartners has summarizers that stream without end, send very slowly, say nothing, redirect and
// disconnect, and a runtime whose hooks never answer. Compactions must end in time with a reason, contexts
// must not wait for any of it, and the program must not grow.
func TestFaultPartners(t *testing.T) {
	const timeout = 2 * time.Second
	var asked atomic.Int64
	config := "summarizers:\n"
	urls := endpoints(t, &asked)
	for name, url := range urls {
		config += fmt.Sprintf("  %q: {type: openai, model: m, base_url: %q, timeout: 1s, task_timeout: %s, max_attempts: 2}\n", name, url, timeout)
	}
	file := filepath.Join(t.TempDir(), "contextd.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p := spawn(t, exec.Command(build(t), append(faultArgs(filepath.Join(t.TempDir(), "data")), "--config="+file, "--hook-timeout=500ms", "--log-level=error")...))
	client := contextdv1.NewContextServiceClient(p.conn)
	for range 40 {
		for _, role := range []contextdv1.Role{contextdv1.Role_ROLE_USER, contextdv1.Role_ROLE_ASSISTANT} {
			event := said(words(2000))
			event.GetMessage().Role = role
			if _, err := client.AppendEvents(t.Context(), &contextdv1.AppendEventsRequest{SessionId: "s", Events: []*contextdv1.Event{event}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name := range urls {
		contexts, done := make(chan time.Duration, 1), make(chan struct{})
		go func() { contexts <- slowestContext(t, p.dial(t), done) }()
		before, began := asked.Load(), time.Now()
		_, err := contextdv1.NewCompactionServiceClient(p.conn).CompactSession(t.Context(), &contextdv1.CompactSessionRequest{
			SessionId: "s", Strategy: "summarize", Policy: &contextdv1.Policy{Summarization: &contextdv1.Summarization{Summarizer: name}},
		})
		took := time.Since(began)
		close(done)
		if reason := reasonOf(err); reason != apierr.ReasonSummarizer && reason != apierr.ReasonNoSummary {
			t.Errorf("%s: %v", name, err)
		}
		if asked.Load() == before {
			t.Errorf("%s was not asked", name)
		}
		if took > timeout+2*time.Second {
			t.Errorf("%s: the compaction took %s", name, took)
		}
		if slowest := <-contexts; slowest > timeout {
			t.Errorf("%s: a context took %s meanwhile", name, slowest)
		}
		t.Logf("%-12s %s: %v", name, took.Round(time.Millisecond), err)
	}
	hooks, err := contextdv1.NewCompactionServiceClient(p.dial(t)).ServeHooks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := hooks.Send(&contextdv1.ServeHooksRequest{Part: &contextdv1.ServeHooksRequest_Subscribe{Subscribe: &contextdv1.HookSubscription{PreCompact: true, PostCompact: true}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := hooks.Header(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	resp, err := contextdv1.NewCompactionServiceClient(p.conn).CompactSession(t.Context(), &contextdv1.CompactSessionRequest{SessionId: "s", Strategy: "window", KeepLastTurns: 1})
	if took := time.Since(began); err != nil || resp.GetOutcome() != "compacted" || took < 500*time.Millisecond || took > 5*time.Second {
		t.Errorf("with hooks that never answer: %v, %v after %s", resp, err, took)
	}
	if peak := p.peak(t); peak > podMemory/2 {
		t.Errorf("it took %d MiB", peak>>20)
	}
}

// slowestContext assembles contexts until done is closed, and returns the longest time.
func slowestContext(t *testing.T, conn *grpc.ClientConn, done <-chan struct{}) (slowest time.Duration) {
	client := contextdv1.NewContextServiceClient(conn)
	for {
		began := time.Now()
		if _, err := assemble(t.Context(), client, &contextdv1.AssembleContextRequest{SessionId: "s", Preview: true, Budget: &contextdv1.Budget{MaxTokens: 20_000, Tokenizer: "heuristic"}}); err != nil {
			t.Error(err)
			return 0
		}
		slowest = max(slowest, time.Since(began))
		select {
		case <-done:
			return slowest
		case <-time.After(20 * time.Millisecond):
		}
	}
}
