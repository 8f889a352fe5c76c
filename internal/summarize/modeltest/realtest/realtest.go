// Package realtest tests backends against real endpoints, and records the exchanges from which the fake of modeltest
// is built.
package realtest

import (
	"context"
	"errors"
	"flag"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/contextd/contextd/internal/summarize"
	"github.com/contextd/contextd/internal/summarize/modelhttp"
	"github.com/contextd/contextd/internal/summarize/modeltest"
)

// Flags say which endpoint there is and what to expect of it.
type Flags struct {
	endpoint, keyEnv, server, record, cases string
}

// RegisterFlags adds the flags to those of a test binary.
func RegisterFlags(f *flag.FlagSet) *Flags {
	var r Flags
	f.StringVar(&r.endpoint, "endpoint", "", "base `URL` of a real endpoint")
	f.StringVar(&r.keyEnv, "key-env", "", "`variable` that holds the endpoint's key")
	f.StringVar(&r.cases, "cases", "", "what is expected, as `case=model,...`, such as ok=qwen2.5:7b")
	f.StringVar(&r.server, "server", "", "`name and version` of the server, for -record")
	f.StringVar(&r.record, "record", "", "`folder` to record the exchanges in")
	return &r
}

// expected has the expected result of each case: a part of the error, and whether it is permanent.
var expected = map[modeltest.Behaviour]struct {
	fails     string
	permanent bool
}{
	modeltest.OK:              {},
	modeltest.CutOff:          {"cut off", true},
	modeltest.ContextExceeded: {"answered 400", true},
	modeltest.Unauthorized:    {"answered 40", true},
	modeltest.UnknownModel:    {"answered 4", true},
	modeltest.RateLimited:     {"answered 429", false},
	modeltest.Failing:         {"answered 500", false},
}

// Run tests a backend against the endpoint. It skips if there is none.
func (f *Flags) Run(t *testing.T, api modeltest.API, open func(modelhttp.Options) (summarize.Backend, error)) {
	if f.endpoint == "" {
		t.Skip("SKIPPED: no -endpoint given; tools/realmodel/run.sh starts real servers")
	}
	if f.cases == "" {
		t.Fatal("-cases is empty")
	}
	for _, pair := range strings.Split(f.cases, ",") {
		name, model, ok := strings.Cut(pair, "=")
		c := modeltest.Behaviour(name)
		_, known := expected[c]
		if !ok || !known {
			t.Fatalf("-cases: %q", pair)
		}
		t.Run(name, func(t *testing.T) {
			network := http.DefaultTransport.(*http.Transport).Clone()
			defer network.CloseIdleConnections()
			recorder := &modeltest.Recorder{Base: network}
			o := modelhttp.Options{
				BaseURL: f.endpoint, Model: model, MaxAttempts: 1, Timeout: 5 * time.Minute,
				HTTPClient: &http.Client{Transport: recorder},
			}
			switch {
			case c == modeltest.Unauthorized:
				o.APIKey = modelhttp.Literal("sk-this-is-not-the-key")
			case f.keyEnv != "":
				var err error
				if o.APIKey, err = modelhttp.FromEnv(f.keyEnv); err != nil {
					t.Fatal(err)
				}
			}
			b, err := open(o)
			if err != nil {
				t.Fatal(err)
			}
			out, err := b.Summarize(t.Context(), request(c))
			if f.record != "" {
				if err := recorder.Save(f.record, f.server, api, c); err != nil {
					t.Error(err)
				}
			}
			t.Logf("wrote %q by %q with %d tokens in, %d out; error: %v", out.Text, out.Model, out.InputTokens, out.OutputTokens, err)
			check(t, c, out, err)
			if key := os.Getenv(f.keyEnv); key != "" && err != nil && strings.Contains(err.Error(), key) {
				t.Error("the error holds the key")
			}
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		b, err := open(modelhttp.Options{BaseURL: f.endpoint, Model: "any"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := b.Summarize(ctx, request(modeltest.OK)); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

func check(t *testing.T, c modeltest.Behaviour, out summarize.Output, err error) {
	t.Helper()
	want := expected[c]
	if want.fails == "" {
		if err != nil || strings.TrimSpace(out.Text) == "" || out.Model == "" || out.InputTokens == 0 || out.OutputTokens == 0 {
			t.Errorf("got %+v, %v", out, err)
		}
		return
	}
	if err == nil || !strings.Contains(err.Error(), want.fails) || errors.Is(err, summarize.ErrPermanent) != want.permanent {
		t.Errorf("got %v, permanent %v; want %q, permanent %v",
			err, errors.Is(err, summarize.ErrPermanent), want.fails, want.permanent)
	}
}

// request returns the request of a case.
func request(c modeltest.Behaviour) summarize.Request {
	r := summarize.Request{
		System:          "Summarise what an agent did. Keep exact paths and names.",
		Prompt:          "| user: Make Append durable.\n| assistant: I read internal/log/store.go <Append>.\n",
		MaxOutputTokens: 400,
	}
	switch c {
	case modeltest.CutOff:
		r.MaxOutputTokens = 1
	case modeltest.ContextExceeded:
		r.Prompt += strings.Repeat("| assistant: I read on.\n", 100)
	}
	return r
}
