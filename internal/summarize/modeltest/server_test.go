package modeltest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/contextd/contextd/internal/summarize/modeltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const chat = `{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"one\ntwo"}],"max_tokens":50}`

// post asks the chat completions API.
func post(ctx context.Context, s *modeltest.Server, path, body string) (int, string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := s.Client().Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(raw), err
}

// A server can be switched while it runs, on the network and in memory, and is at
// the same address after it was down.
func TestSwitch(t *testing.T) {
	for name, options := range map[string][]modeltest.Option{
		"loopback": nil,
		"memory":   {modeltest.InMemory()},
	} {
		t.Run(name, func(t *testing.T) {
			s := modeltest.New(modeltest.Down, options...)
			defer s.Close()
			address := s.URL
			for range 3 {
				s.Switch(modeltest.Down)
				if _, _, err := post(t.Context(), s, "/v1/chat/completions", chat); !errors.Is(err, syscall.ECONNREFUSED) {
					t.Fatalf("down: %v", err)
				}
				s.Switch(modeltest.OK)
				status, body, err := post(t.Context(), s, "/v1/chat/completions", chat)
				if err != nil || status != http.StatusOK || !strings.Contains(body, "Summary ") {
					t.Fatalf("ok: %d %s %v", status, body, err)
				}
				s.Switch(modeltest.Failing)
				if status, _, err := post(t.Context(), s, "/v1/chat/completions", chat); status != http.StatusInternalServerError {
					t.Fatalf("failing: %d %v", status, err)
				}
			}
			if s.URL != address || len(s.Requests()) != 6 {
				t.Errorf("%d requests at %s", len(s.Requests()), s.URL)
			}
		})
	}
}

func TestRequestsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := modeltest.New(modeltest.Slow, modeltest.InMemory(), modeltest.Delay(time.Minute))
		defer s.Close()
		begin := time.Now()
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if status, _, err := post(t.Context(), s, "/v1/chat/completions", chat); status != http.StatusOK {
					t.Errorf("%d, %v", status, err)
				}
			})
		}
		synctest.Wait()
		if s.InFlight() != 5 {
			t.Errorf("%d in flight", s.InFlight())
		}
		wg.Wait()
		if took := time.Since(begin); took != time.Minute {
			t.Errorf("took %v", took)
		}
		s.Switch(modeltest.OK)
		if _, _, err := post(t.Context(), s, "/v1/chat/completions", chat); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if s.InFlight() != 0 || s.MaxInFlight() != 5 || len(s.Requests()) != 6 {
			t.Errorf("%d in flight, %d at most, %d in all", s.InFlight(), s.MaxInFlight(), len(s.Requests()))
		}
		got := s.Requests()[0]
		if got.System != "s" || got.Prompt != "one\ntwo" || got.MaxTokens != 50 || got.API != modeltest.OpenAI {
			t.Errorf("read %+v", got)
		}
	})
}

// A client that hangs leaves at once when the server closes.
func TestCloseEndsWhatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := modeltest.New(modeltest.Hang, modeltest.InMemory())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _, _ = post(context.Background(), s, "/v1/chat/completions", chat)
		}()
		synctest.Wait()
		begin := time.Now()
		s.Close()
		s.Close()
		<-done
		if took := time.Since(begin); took != 0 {
			t.Errorf("took %v", took)
		}
	})
}

// The fake refuses what real servers refuse, so that a backend cannot pass with
// requests that are none of the API.
func TestInvalidRequestsAreRefused(t *testing.T) {
	s := modeltest.New(modeltest.OK, modeltest.InMemory())
	defer s.Close()
	for _, c := range []struct {
		path, body string
		status     int
	}{
		{"/v1/chat/completions", chat, 200},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"a"}]}`, 400},
		{"/v1/chat/completions", `{"model":"m","messages":[]}`, 400},
		{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"a"},{"role":"system","content":"a"}]}`, 400},
		{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"a"}],"max_tokens":1,"max_completion_tokens":1}`, 400},
		{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"a"}],"max_tokens":-1}`, 400},
		{"/v1/chat/completions", `{`, 400},
		{"/v1/messages", chat, 400}, // a system message, and no version
		{"/v1/messages", `{"model":"m","messages":[{"role":"user","content":"a"}],"max_tokens":5}`, 400},
		{"/chat/completions", chat, 404},
	} {
		status, body, err := post(t.Context(), s, c.path, c.body)
		if status != c.status || err != nil {
			t.Errorf("%s %s: %d %s %v", c.path, c.body, status, body, err)
		}
	}
	locked := modeltest.New(modeltest.OK, modeltest.InMemory(), modeltest.Key("k"))
	defer locked.Close()
	if status, _, _ := post(t.Context(), locked, "/v1/chat/completions", chat); status != http.StatusUnauthorized {
		t.Errorf("without a key: %d", status)
	}
}

// What was recorded says where it comes from and holds no credential.
func TestExchanges(t *testing.T) {
	all, err := modeltest.Exchanges()
	if err != nil || len(all) == 0 {
		t.Fatalf("%d exchanges, %v", len(all), err)
	}
	for name, e := range all {
		server, version, _ := strings.Cut(e.Server, " ")
		if want := fmt.Sprintf("%s/%s.%s.json", e.API, e.Case, server); name != want || version == "" {
			t.Errorf("%s holds %s", name, want)
		}
		if !json.Valid(e.Request.Body) || !json.Valid(e.Response.Body) || e.Response.Status == 0 {
			t.Errorf("%s is not whole", name)
		}
		for header, value := range e.Request.Headers {
			if (header == "Authorization" || header == "X-Api-Key") && !strings.HasSuffix(value, "[secret]") {
				t.Errorf("%s shows %s", name, header)
			}
		}
	}
}
