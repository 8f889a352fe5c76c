package modeltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Request is a client's request.
type Request struct {
	// API is OpenAI or Anthropic.
	API    API
	Header http.Header
	Model  string
	// System and Prompt are the text of the system's and of the last message.
	System, Prompt string
	// MaxTokens is the limit of the output; 0 if there is none.
	MaxTokens uint64
}

// API is the form of requests and answers.
type API string

// The APIs.
const (
	OpenAI    API = "openai"
	Anthropic API = "anthropic"
)

// maxRequestBytes is the longest request.
const maxRequestBytes = 64 << 20

// read parses a request. Its error is one of form, to which servers answer 400.
func read(api API, r *http.Request) (Request, error) {
	req := Request{API: api, Header: r.Header.Clone()}
	raw, err := io.ReadAll(io.LimitReader(r.Body, maxRequestBytes))
	if err != nil {
		return req, err
	}
	var body struct {
		Model               string  `json:"model"`
		System              string  `json:"system"`
		MaxTokens           *uint64 `json:"max_tokens"`
		MaxCompletionTokens *uint64 `json:"max_completion_tokens"`
		Messages            []struct {
			Role    string `json:"role"`
			Content string `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(raw, &body); err != nil {
		return req, fmt.Errorf("body: %w", err)
	}
	req.Model, req.System = body.Model, body.System
	for _, limit := range []*uint64{body.MaxTokens, body.MaxCompletionTokens} {
		if limit != nil {
			req.MaxTokens = *limit
		}
	}
	for i, m := range body.Messages {
		switch {
		case m.Role == "system" && api == OpenAI && i == 0:
			req.System = m.Content
		case m.Role == "user" || m.Role == "assistant":
			req.Prompt = m.Content
		default:
			return req, fmt.Errorf("messages[%d].role: %q does not belong here", i, m.Role)
		}
	}
	switch {
	case !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json"):
		return req, errors.New("content-type: must be application/json")
	case req.Model == "":
		return req, errors.New("model: field required")
	case req.Prompt == "":
		return req, errors.New("messages: field required")
	case api == Anthropic && body.MaxTokens == nil:
		return req, errors.New("max_tokens: field required")
	case api == Anthropic && r.Header.Get("Anthropic-Version") == "":
		return req, errors.New("anthropic-version: header is required")
	case body.MaxTokens != nil && body.MaxCompletionTokens != nil:
		return req, errors.New("max_tokens and max_completion_tokens cannot both be set")
	}
	return req, nil
}

// key returns the credential in the request.
func (r Request) key() string {
	if r.API == Anthropic {
		return r.Header.Get("X-Api-Key")
	}
	key, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return key
}
