package anthropic_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/summarize"
	"github.com/contextd/contextd/internal/summarize/anthropic"
	"github.com/contextd/contextd/internal/summarize/modelhttp"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestWhatIsSent(t *testing.T) {
	for _, c := range []struct{ base, want string }{
		{"", "https://api.anthropic.com/v1/messages"},
		{"http://host:1", "http://host:1/v1/messages"},
		{"http://host:1/", "http://host:1/v1/messages"},
		{"http://host:1/proxy/v1/?a=b", "http://host:1/proxy/v1/messages?a=b"},
	} {
		var request *http.Request
		var body map[string]any
		client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			request = r
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				return nil, err
			}
			answer := `{"type":"message","content":[{"type":"text","text":"text"}]}`
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(answer))}, nil
		})}
		b, err := anthropic.New(anthropic.Options{Options: modelhttp.Options{
			BaseURL: c.base, Model: "m", APIKey: modelhttp.Literal("k"), HTTPClient: client, OmitTemperature: true,
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Summarize(t.Context(), summarize.Request{Prompt: "p"}); err != nil {
			t.Fatal(err)
		}
		if got := request.URL.String(); got != c.want {
			t.Errorf("%q: asked %s", c.base, got)
		}
		if request.Header.Get("X-Api-Key") != "k" || request.Header.Get("Anthropic-Version") == "" || request.Header.Get("Authorization") != "" {
			t.Errorf("sent %v", request.Header)
		}
		// The API insists on a limit.
		if _, ok := body["temperature"]; ok || body["max_tokens"] != 4096.0 {
			t.Errorf("sent %v", body)
		}
	}
}
