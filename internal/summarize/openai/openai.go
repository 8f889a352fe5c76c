package openai

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/summarize"
	"github.com/contextd/contextd/internal/summarize/modelhttp"
)

// The names of the output limit in requests. Most endpoints know the first; OpenAI's reasoning models require the
// second.
const (
	MaxTokens           = "max_tokens"
	MaxCompletionTokens = "max_completion_tokens"
)

// Options say which model is asked, and how. BaseURL is the address before /chat/completions, such as
// http://127.0.0.1:11434/v1.
type Options struct {
	modelhttp.Options
	// MaxTokensField is MaxTokens or MaxCompletionTokens; empty is MaxTokens.
	MaxTokensField string
}

// Backend implements summarize.Backend.
type Backend struct {
	client         *modelhttp.Client
	maxTokensField string
}

var _ summarize.Backend = (*Backend)(nil)

// New returns a backend for an endpoint, and sends nothing. The error is an *eventlog.InvalidError that names the key
// in the configuration.
func New(o Options) (*Backend, error) {
	if o.MaxTokensField == "" {
		o.MaxTokensField = MaxTokens
	}
	if o.MaxTokensField != MaxTokens && o.MaxTokensField != MaxCompletionTokens {
		return nil, &eventlog.InvalidError{
			Field:  "max_tokens_field",
			Reason: fmt.Sprintf("must be %s or %s", MaxTokens, MaxCompletionTokens),
		}
	}
	client, err := modelhttp.NewClient(o.Options, modelhttp.Dialect{
		Authorize: func(h http.Header, key string) { h.Set("Authorization", "Bearer "+key) },
		Failure:   parseFailure,
	}, func(base *url.URL) *url.URL { return base.JoinPath("chat/completions") })
	if err != nil {
		return nil, err
	}
	return &Backend{client, o.MaxTokensField}, nil
}

// Close closes idle connections. The backend can still be used.
func (b *Backend) Close() error { return b.client.Close() }

// Summarize asks the model. It retries temporary failures; docs/summarizers.md says which those are. No error
// contains the key or a part of the prompt.
func (b *Backend) Summarize(ctx context.Context, r summarize.Request) (summarize.Output, error) {
	return b.client.Summarize(ctx, r, b.request(r), parseAnswer)
}

type request struct {
	Model               string    `json:"model"`
	Messages            []message `json:"messages"`
	Temperature         *float64  `json:"temperature,omitempty"`
	MaxTokens           uint64    `json:"max_tokens,omitempty"`
	MaxCompletionTokens uint64    `json:"max_completion_tokens,omitempty"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func (b *Backend) request(r summarize.Request) request {
	o := b.client.Options()
	req := request{Model: o.Model}
	if r.System != "" {
		req.Messages = append(req.Messages, message{"system", r.System})
	}
	req.Messages = append(req.Messages, message{"user", r.Prompt})
	if !o.OmitTemperature {
		req.Temperature = &o.Temperature
	}
	if b.maxTokensField == MaxCompletionTokens {
		req.MaxCompletionTokens = o.OutputLimit(r)
	} else {
		req.MaxTokens = o.OutputLimit(r)
	}
	return req
}
