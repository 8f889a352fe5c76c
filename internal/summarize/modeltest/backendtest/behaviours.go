// Package backendtest is the suite that every backend over HTTP passes: the result of each behaviour of an endpoint,
// how often the backend asks, and how long that takes on a fake clock.
package backendtest

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/contextd/contextd/internal/summarize"
	"github.com/contextd/contextd/internal/summarize/modelhttp"
	"github.com/contextd/contextd/internal/summarize/modeltest"
)

// Open returns a backend with these options.
type Open func(modelhttp.Options) (summarize.Backend, error)

// Run tests a backend.
func Run(t *testing.T, api modeltest.API, open Open) {
	t.Run("outcome", func(t *testing.T) { outcomes(t, api, open) })
	t.Run("recovery", func(t *testing.T) { recovery(t, api, open) })
	t.Run("rate", func(t *testing.T) { rate(t, api, open) })
	t.Run("cancel", func(t *testing.T) { cancel(t, api, open) })
	t.Run("deadline", func(t *testing.T) { deadline(t, api, open) })
	t.Run("request", func(t *testing.T) { requests(t, api, open) })
	t.Run("secrets", func(t *testing.T) { secrets(t, open) })
	t.Run("named", func(t *testing.T) { named(t, open) })
	t.Run("redirect", func(t *testing.T) { redirect(t, api, open) })
	t.Run("size", func(t *testing.T) { size(t, api, open) })
}

const (
	key      = "sk-Zx81quuxPlughXyzzy42"
	attempts = 3
)

var ask = summarize.Request{
	System:          "Summarise.",
	Prompt:          "| user: make Append durable\n| assistant: reading internal/log/store.go\n",
	MaxOutputTokens: 100,
}

// base returns the base URL of the API on the server.
func base(api modeltest.API, s *modeltest.Server) string {
	if api == modeltest.OpenAI {
		return s.OpenAIURL()
	}
	return s.URL
}

// serve starts a server in memory and a backend for it.
func serve(t *testing.T, api modeltest.API, open Open, b modeltest.Behaviour, change func(*modelhttp.Options), options ...modeltest.Option) (*modeltest.Server, summarize.Backend) {
	t.Helper()
	s := modeltest.New(b, append(options, modeltest.InMemory(), modeltest.Key(key))...)
	t.Cleanup(s.Close)
	o := modelhttp.Options{
		BaseURL: base(api, s), Model: "tiny", APIKey: modelhttp.Literal(key),
		MaxAttempts: attempts, HTTPClient: s.Client(),
	}
	if change != nil {
		change(&o)
	}
	backend, err := open(o)
	if err != nil {
		t.Fatal(err)
	}
	return s, backend
}

// outcome is the expected result of a behaviour.
type outcome struct {
	text      func(string) bool // nil where there is none
	fails     string
	permanent bool
	attempts  int
	// least and most are how long it takes.
	least, most time.Duration
}

func summary(text string) bool { return strings.HasPrefix(text, "Summary ") }

func outcomes(t *testing.T, api modeltest.API, open Open) {
	// Two waits, of a second and of two, each half as long again or as short.
	const least, most = 1500 * time.Millisecond, 4500 * time.Millisecond
	retried := func(fails string) outcome {
		return outcome{fails: fails, attempts: attempts, least: least, most: most}
	}
	final := func(fails string) outcome { return outcome{fails: fails, permanent: true, attempts: 1} }
	down := retried("connection refused")
	down.attempts = 0
	hang := retried("no whole answer within 1m0s")
	hang.least, hang.most = least+3*time.Minute, most+3*time.Minute
	overloaded := retried("answered 503")
	if api == modeltest.Anthropic {
		overloaded = retried("answered 529 overloaded_error: Overloaded")
	}
	want := map[modeltest.Behaviour]outcome{
		modeltest.OK:       {text: summary, attempts: 1},
		modeltest.Slow:     {text: summary, attempts: 1, least: 2 * time.Second, most: 2 * time.Second},
		modeltest.Thinking: {text: summary, attempts: 1},
		modeltest.Echo:     {text: func(s string) bool { return s == strings.TrimSpace(ask.Prompt) }, attempts: 1},
		modeltest.Long:     {text: func(s string) bool { return len(s) > 10_000 }, attempts: 1},

		modeltest.Hang:       hang,
		modeltest.Down:       down,
		modeltest.Failing:    retried("answered 500"),
		modeltest.Overloaded: overloaded,
		modeltest.RateLimited: {
			fails: "answered 429", attempts: attempts, least: 40 * time.Second, most: 40 * time.Second,
		},
		modeltest.NotJSON:    retried("not JSON"),
		modeltest.HTML:       retried("not JSON"),
		modeltest.Truncated:  retried("not JSON"),
		modeltest.WrongShape: retried("the answer "),

		modeltest.Upgrade:         final("answered 101"),
		modeltest.Unauthorized:    final("answered 401"),
		modeltest.UnknownModel:    final("answered 400"),
		modeltest.ContextExceeded: final("answered 400"),
		modeltest.Empty:           final("wrote no text"),
		modeltest.CutOff:          final("cut off"),
		modeltest.Refusal:         final("refused"),
	}
	for _, behaviour := range modeltest.Behaviours() {
		w, ok := want[behaviour]
		if !ok {
			t.Errorf("nothing is expected of %s", behaviour)
			continue
		}
		t.Run(string(behaviour), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, b := serve(t, api, open, behaviour, nil, modeltest.RetryAfter("20"))
				begin := time.Now()
				out, err := b.Summarize(t.Context(), ask)
				took := time.Since(begin)
				if w.text != nil && (err != nil || !w.text(out.Text) || out.Model != "tiny" || out.InputTokens == 0 || out.OutputTokens == 0) {
					t.Errorf("got %+v, %v", out, err)
				}
				if w.text == nil && (err == nil || out != (summarize.Output{}) || !strings.Contains(err.Error(), w.fails)) {
					t.Errorf("got %+v, %v; want %q", out, err, w.fails)
				}
				if errors.Is(err, summarize.ErrPermanent) != w.permanent {
					t.Errorf("%v: permanent is %v", err, !w.permanent)
				}
				if n := len(s.Requests()); n != w.attempts {
					t.Errorf("asked %d times, want %d", n, w.attempts)
				}
				if took < w.least || took > w.most {
					t.Errorf("took %v, want %v to %v", took, w.least, w.most)
				}
				if behaviour == modeltest.Down && !errors.Is(err, syscall.ECONNREFUSED) {
					t.Errorf("%v hides its cause", err)
				}
			})
		})
	}
}
