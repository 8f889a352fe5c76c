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
	// DefaultBaseURL is the address of the provider's API.
	DefaultBaseURL = "https://api.anthropic.com"
	version        = "2023-06-01"
	// defaultMaxTokens is for requests without a limit, because the API requires one.
	defaultMaxTokens = 4096
)

// Options say which model is asked, and how. BaseURL is the address before /v1/messages; empty is DefaultBaseURL.
type Options struct{ modelhttp.Options }

// Backend implements summarize.Backend.
type Backend struct{ client *modelhttp.Client }

var _ summarize.Backend = (*Backend)(nil)

// New returns a backend for the API, and sends nothing. The error is an *eventlog.InvalidError that names the key in
// the configuration.
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

// locate returns the address of the API. It accepts base addresses with and without the version.
func locate(base *url.URL) *url.URL {
	if strings.HasSuffix(strings.TrimRight(base.Path, "/"), "/v1") {
		return base.JoinPath("messages")
	}
	return base.JoinPath("v1/messages")
}

// Close closes idle connections. The backend can still be used.
func (b *Backend) Close() error { return b.client.Close() }

// Summarize asks the model. It retries temporary failures; docs/summarizers.md says which those are. No error
// contains the key or a part of the prompt.
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
