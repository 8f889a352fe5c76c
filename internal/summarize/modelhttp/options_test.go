package modelhttp

import (
	"errors"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/summarize"
)

var plain = Dialect{
	Authorize: func(h http.Header, key string) { h.Set("Authorization", key) },
	Failure:   func([]byte) Failure { return Failure{} },
}

func same(u *url.URL) *url.URL { return u }

func TestOptionsNameWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Options)
		field  string
	}{
		"no URL":               {func(o *Options) { o.BaseURL = "" }, "base_url"},
		"another scheme":       {func(o *Options) { o.BaseURL = "ftp://xyzzy@host" }, "base_url"},
		"no scheme":            {func(o *Options) { o.BaseURL = "127.0.0.1:11434/v1" }, "base_url"},
		"no host":              {func(o *Options) { o.BaseURL = "http:///v1" }, "base_url"},
		"broken URL":           {func(o *Options) { o.BaseURL = "http://u:xyzzy@[" }, "base_url"},
		"user and key":         {func(o *Options) { o.BaseURL = "http://u:xyzzy@host"; o.APIKey = Literal("k") }, "base_url"},
		"no model":             {func(o *Options) { o.Model = " " }, "model"},
		"negative timeout":     {func(o *Options) { o.Timeout = -1 }, "timeout"},
		"negative attempts":    {func(o *Options) { o.MaxAttempts = -1 }, "max_attempts"},
		"negative rate":        {func(o *Options) { o.RequestsPerMinute = -1 }, "requests_per_minute"},
		"no rate":              {func(o *Options) { o.RequestsPerMinute = math.NaN() }, "requests_per_minute"},
		"high temperature":     {func(o *Options) { o.Temperature = 3 }, "temperature"},
		"no temperature":       {func(o *Options) { o.Temperature = math.NaN() }, "temperature"},
		"much reasoning":       {func(o *Options) { o.ReasoningTokens = 1 << 40 }, "reasoning_tokens"},
		"header's name":        {func(o *Options) { o.Headers = map[string]string{"a b": "c"} }, "headers"},
		"header's value":       {func(o *Options) { o.Headers = map[string]string{"A": "xyzzy\r\nB: c"} }, "headers.A"},
		"key with a line":      {func(o *Options) { o.APIKey = Literal("xyzzy\nabc") }, "api_key"},
		"key outside of ASCII": {func(o *Options) { o.APIKey = Literal("xyzzyé") }, "api_key"},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{BaseURL: "http://127.0.0.1:11434/v1", Model: "m"}
			c.change(&o)
			_, err := NewClient(o, plain, same)
			invalid := (*eventlog.InvalidError)(nil)
			if !errors.As(err, &invalid) || invalid.Field != c.field {
				t.Fatalf("got %v, want %s", err, c.field)
			}
			if strings.Contains(err.Error(), "xyzzy") {
				t.Errorf("%v shows a secret", err)
			}
		})
	}
}

func TestDefaults(t *testing.T) {
	c, err := NewClient(Options{BaseURL: "http://user:pass@host:1/v1?key=x", Model: "m"}, plain, same)
	if err != nil {
		t.Fatal(err)
	}
	if o := c.Options(); o.Timeout != DefaultTimeout || o.MaxAttempts != DefaultMaxAttempts {
		t.Errorf("got %+v", o)
	}
	if c.endpoint != "http://host:1/v1" {
		t.Errorf("errors would name %s", c.endpoint)
	}
}

func TestOutputLimit(t *testing.T) {
	for _, c := range []struct{ limit, reasoning, least, most uint64 }{
		{0, 0, 0, 0},
		{0, 500, 0, 0},
		{1000, 0, 1001, 1500},
		{1000, 5000, 6001, 6500},
		{math.MaxUint64, 1, 1 << 31, 1 << 32},
	} {
		got := Options{ReasoningTokens: c.reasoning}.OutputLimit(summarize.Request{MaxOutputTokens: c.limit})
		if got < c.least || got > c.most {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// A key file that is gone fails the request without asking the endpoint, and may be
// back for the next.
func TestKeyIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte("k"), 0o600); err != nil {
		t.Fatal(err)
	}
	key, err := FromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewClient(Options{BaseURL: "http://model.invalid", Model: "m", APIKey: key, HTTPClient: &http.Client{
		Transport: roundTrip(func(*http.Request) (*http.Response, error) {
			t.Error("asked without a key")
			return nil, errors.New("no")
		}),
	}}, plain, same)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	_, err = c.send(t.Context(), nil, nil, nil)
	if err == nil || errors.Is(err, summarize.ErrPermanent) || !strings.Contains(err.Error(), "key for http://model.invalid") {
		t.Errorf("got %v", err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
