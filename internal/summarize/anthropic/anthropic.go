package anthropic

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/contextd/contextd/internal/summarize"
	"github.com/contextd/contextd/internal/summarize/modelhttp"
)

const (
	// DefaultBaseURL is where the provider serves the API.
	DefaultBaseURL = "https://api.anthropic.com"
	version        = "2023-06-01"
	// defaultMaxTokens applies to requests without a limit: the API insists on one.
	defaultMaxTokens = 4096
)

// Options say which model is asked, and how. BaseURL is what /v1/messages follows;
// empty for DefaultBaseURL.
type Options struct{ modelhttp.Options }

// Backend implements summarize.Backend.
type Backend struct{ client *modelhttp.Client }

var _ summarize.Backend = (*Backend)(nil)

// New returns a backend for the API, without asking it anything. What is wrong with
// the options is an *eventlog.InvalidError that names the configuration's key.
func New(o Options) (*Backend, error) {
	if o.BaseURL == "" {
		o.BaseURL = DefaultBaseURL
	}
	client, err := modelhttp.NewClient(o.Options, modelhttp.Dialect{
		Authorize: func(h http.Header, key string) { h.Set("X-Api-Key", key) },
		Headers:   map[string]string{"Anthropic-Version": version},
		Failure:   parseFailure,
	}, locate)
	if err != nil {
		return nil, err
	}
	return &Backend{client}, nil
}

// locate accepts base addresses with and without the version.
func locate(base *url.URL) *url.URL {
	if strings.HasSuffix(strings.TrimRight(base.Path, "/"), "/v1") {
		return base.JoinPath("messages")
	}
	return base.JoinPath("v1/messages")
}

// Close drops connections that are not in use. The backend can still be used.
func (b *Backend) Close() error { return b.client.Close() }

// Summarize asks the model. Failures that may pass are retried first; see
// docs/summarizers.md for which. No error holds the key or a part of the prompt.
func (b *Backend) Summarize(ctx context.Context, r summarize.Request) (summarize.Output, error) {
	return b.client.Summarize(ctx, r, b.request(r), parseAnswer)
}

type request struct {
	Model       string    `json:"model"`
	MaxTokens   uint64    `json:"max_tokens"`
	System      string    `json:"system,omitempty"`
	Messages    []message `json:"messages"`
	Temperature *float64  `json:"temperature,omitempty"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func (b *Backend) request(r summarize.Request) request {
	o := b.client.Options()
	req := request{
		Model:     o.Model,
		MaxTokens: o.OutputLimit(r),
		System:    r.System,
		Messages:  []message{{"user", r.Prompt}},
	}
	if req.MaxTokens == 0 {
		req.MaxTokens = defaultMaxTokens + o.ReasoningTokens
	}
	if !o.OmitTemperature {
		req.Temperature = &o.Temperature
	}
	return req
}
