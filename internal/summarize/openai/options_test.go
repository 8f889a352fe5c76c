package openai_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/summarize"
	"github.com/contextd/contextd/internal/summarize/modelhttp"
	"github.com/contextd/contextd/internal/summarize/modeltest"
	"github.com/contextd/contextd/internal/summarize/openai"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// sent returns the header, the address and the members of the body that a request
// goes out with.
func sent(t *testing.T, o openai.Options, r summarize.Request) (*http.Request, map[string]any) {
	t.Helper()
	var request *http.Request
	var body map[string]any
	o.HTTPClient = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		request = r
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			return nil, err
		}
		answer := `{"choices":[{"message":{"content":"text"}}]}`
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(answer))}, nil
	})}
	b, err := openai.New(o)
	if err != nil {
		t.Fatal(err)
	}
	out, err := b.Summarize(t.Context(), r)
	if err != nil || out.Text != "text" || out.Model != "m" {
		t.Fatalf("got %+v, %v", out, err)
	}
	return request, body
}

func TestWhatIsSent(t *testing.T) {
	o := openai.Options{Options: modelhttp.Options{BaseURL: "http://host:1/v1/?version=2", Model: "m"}}
	ask := summarize.Request{Prompt: "p < q", MaxOutputTokens: 100}

	request, body := sent(t, o, ask)
	if got := request.URL.String(); got != "http://host:1/v1/chat/completions?version=2" {
		t.Errorf("asked %s", got)
	}
	if got := request.Header.Get("Authorization"); got != "" {
		t.Errorf("sent %q without a key", got)
	}
	if temperature, ok := body["temperature"]; !ok || temperature != 0.0 {
		t.Errorf("temperature %v", temperature)
	}
	if _, ok := body["max_tokens"]; !ok || len(body["messages"].([]any)) != 1 {
		t.Errorf("sent %v", body)
	}

	o.MaxTokensField, o.OmitTemperature, o.APIKey = openai.MaxCompletionTokens, true, modelhttp.Literal("k")
	request, body = sent(t, o, ask)
	if got := request.Header.Get("Authorization"); got != "Bearer k" {
		t.Errorf("sent %q", got)
	}
	_, temperature := body["temperature"]
	_, old := body["max_tokens"]
	if _, ok := body["max_completion_tokens"]; !ok || old || temperature {
		t.Errorf("sent %v", body)
	}

	// No limit is none, and net/http makes a header of a user in the address.
	o = openai.Options{Options: modelhttp.Options{BaseURL: "http://user:pass@host/v1", Model: "m"}}
	request, body = sent(t, o, summarize.Request{System: "s", Prompt: "p"})
	if request.URL.User.String() != "user:pass" {
		t.Error("the client was not given the user")
	}
	if _, ok := body["max_tokens"]; ok || len(body["messages"].([]any)) != 2 {
		t.Errorf("sent %v", body)
	}
}

func TestMaxTokensField(t *testing.T) {
	_, err := openai.New(openai.Options{
		Options:        modelhttp.Options{BaseURL: "http://host", Model: "m"},
		MaxTokensField: "max_new_tokens",
	})
	invalid := (*eventlog.InvalidError)(nil)
	if !errors.As(err, &invalid) || invalid.Field != "max_tokens_field" {
		t.Errorf("got %v", err)
	}
}

// The client that a backend brings itself works on the network and leaves nothing
// later when it is closed.
func TestOwnClient(t *testing.T) {
	s := modeltest.New(modeltest.OK)
	defer s.Close()
	b, err := openai.New(openai.Options{Options: modelhttp.Options{BaseURL: s.OpenAIURL(), Model: "m"}})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := b.Summarize(t.Context(), summarize.Request{Prompt: "p"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}
