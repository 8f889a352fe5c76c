package backendtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"unicode"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/summarize"
	"github.com/contextd/contextd/internal/summarize/modelhttp"
	"github.com/contextd/contextd/internal/summarize/modeltest"
)

// transport answers requests without a server.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, err
	}
	return f(r)
}

func response(r *http.Request, status int, h http.Header, body io.Reader) *http.Response {
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(body), Request: r}
}

// requests: the request that is sent has the form of the API and the content of the summarize.Request.
func requests(t *testing.T, api modeltest.API, open Open) {
	synctest.Test(t, func(t *testing.T) {
		s, b := serve(t, api, open, modeltest.OK, func(o *modelhttp.Options) {
			o.Headers = map[string]string{"X-Title": "contextd"}
			o.ReasoningTokens = 1000
		})
		if _, err := b.Summarize(t.Context(), ask); err != nil {
			t.Fatal(err)
		}
		got := s.Requests()[0]
		if got.System != ask.System || got.Prompt != ask.Prompt || got.Model != "tiny" || got.Header.Get("X-Title") != "contextd" {
			t.Errorf("sent %+v", got)
		}
		if got.MaxTokens < ask.MaxOutputTokens+1000 || got.MaxTokens > 2*ask.MaxOutputTokens+1000 {
			t.Errorf("asked for %d tokens", got.MaxTokens)
		}
	})
}

// secrets: whatever an endpoint answers, however it repeats what it was sent, no
// error and no line of the log shows the key, a header, the address's password or the
// prompt, and neither does the backend when it is printed.
func secrets(t *testing.T, open Open) {
	word := rapid.StringMatching(`[A-Za-z0-9]{24,40}`)
	synctest.Test(t, func(t *testing.T) {
		// A bubble has no deadline, and rapid must not ask for one.
		rapid.Check(struct{ rapid.TB }{t}, func(t *rapid.T) {
			secret, value, query, prompt := "sk-"+word.Draw(t, "key"), word.Draw(t, "header"), word.Draw(t, "query"), word.Draw(t, "prompt")
			// What the endpoint repeats: any of it, whole, in part or dressed.
			repeated := func(label string) string {
				whole := rapid.SampledFrom([]string{secret, value, query, prompt, "Bearer " + secret}).Draw(t, label)
				from := rapid.IntRange(0, len(whole)-1).Draw(t, label+" from")
				part := whole[from:rapid.IntRange(from, len(whole)).Draw(t, label+" to")]
				return rapid.SampledFrom([]string{"%s", "wrong key: %s", `say \"%s\"`, "<b>%s</b>", "%s\n\n%[1]s"}).Draw(t, label+" dress") + "\x00" + part
			}
			dressed := func(label string) string {
				format, part, _ := strings.Cut(repeated(label), "\x00")
				return fmt.Sprintf(format, part)
			}
			endpoint := transport(func(r *http.Request) (*http.Response, error) {
				if rapid.IntRange(0, 9).Draw(t, "break") == 0 {
					return nil, fmt.Errorf("malformed HTTP response %q", dressed("line"))
				}
				h := http.Header{"X-Request-Id": {dressed("id")}, "Content-Type": {dressed("type")}, "Retry-After": {dressed("after")}}
				body, _ := json.Marshal(map[string]any{
					"model": dressed("model"), "type": dressed("type"), "detail": dressed("detail"),
					"error": map[string]any{"type": dressed("error type"), "code": dressed("code"), "message": dressed("message")},
				})
				status := rapid.SampledFrom([]int{200, 302, 400, 401, 403, 404, 413, 429, 500, 529}).Draw(t, "status")
				if rapid.Bool().Draw(t, "plain") {
					body = []byte(dressed("body"))
				}
				return response(r, status, h, bytes.NewReader(body)), nil
			})
			var log bytes.Buffer
			o := modelhttp.Options{
				BaseURL: "https://model.invalid/api?token=" + query, Model: "m", APIKey: modelhttp.Literal(secret), MaxAttempts: 2,
				Headers: map[string]string{"X-Gateway-Key": value}, HTTPClient: &http.Client{Transport: endpoint},
				Logger: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			}
			b, err := open(o)
			if err != nil {
				t.Fatal(err)
			}
			_, err = b.Summarize(t.Context(), summarize.Request{System: "Summarise.", Prompt: prompt})
			if err == nil {
				t.Fatal("no error")
			}
			encoded, _ := json.Marshal(o.APIKey)
			said := []string{err.Error(), fmt.Sprintf("%+v", err), log.String(), string(encoded), fmt.Sprintf("%v %+v %#v", o.APIKey, o.APIKey, o.APIKey)}
			for e := err; e != nil; e = errors.Unwrap(e) {
				said = append(said, fmt.Sprintf("%#v", e))
			}
			for _, s := range said {
				for _, hidden := range []struct {
					text    string
					stretch int
				}{{secret, stretch}, {value, stretch}, {query, stretch}, {prompt, 2 * stretch}} {
					if part := shared(s, hidden.text, hidden.stretch); part != "" {
						t.Fatalf("%q shows %q of %q", s, part, hidden.text)
					}
				}
			}
		})
	})
}

// named: the model's name in an answer, which traces and summaries show, is none that
// repeats what was sent.
func named(t *testing.T, open Open) {
	for name, c := range map[string]struct{ answered, want string }{
		"its own":    {"tiny-2", "tiny-2"},
		"none":       {"", "tiny"},
		"the key":    {"model of " + key, "tiny"},
		"a header":   {"tiny/gateway-Value-7", "tiny"},
		"the prompt": {"tiny: " + ask.Prompt, "tiny"},
	} {
		t.Run(name, func(t *testing.T) {
			body, err := json.Marshal(map[string]any{ // a success of either API
				"model": c.answered, "type": "message", "content": []any{map[string]any{"type": "text", "text": "text"}},
				"choices": []any{map[string]any{"message": map[string]any{"content": "text"}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			b, err := open(modelhttp.Options{
				BaseURL: "https://model.invalid", Model: "tiny", APIKey: modelhttp.Literal(key), Headers: map[string]string{"X-Gateway": "gateway-Value-7"},
				HTTPClient: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
					return response(r, http.StatusOK, http.Header{}, bytes.NewReader(body)), nil
				})},
			})
			if err != nil {
				t.Fatal(err)
			}
			if out, err := b.Summarize(t.Context(), ask); err != nil || out.Model != c.want {
				t.Errorf("got %+v, %v; want %q", out, err, c.want)
			}
		})
	}
}

// stretch is the length of a part of a secret that reveals something: a few characters may be next to a status by
// chance.
const stretch = 9

// shared returns a run of n letters and digits that both texts have.
func shared(said, hidden string, n int) string {
	plain := func(s string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				return unicode.ToLower(r)
			}
			return -1
		}, s)
	}
	said, hidden = plain(said), plain(hidden)
	for i := 0; i+n <= len(hidden); i++ {
		if strings.Contains(said, hidden[i:i+n]) {
			return hidden[i : i+n]
		}
	}
	return ""
}

// redirect: a key is sent only to the host for which it was given.
func redirect(t *testing.T, _ modeltest.API, open Open) {
	var hosts []string
	b, err := open(modelhttp.Options{
		BaseURL: "https://model.invalid", Model: "m", APIKey: modelhttp.Literal(key),
		HTTPClient: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			hosts = append(hosts, r.URL.Host)
			h := http.Header{"Location": {"https://elsewhere.invalid/"}}
			return response(r, http.StatusTemporaryRedirect, h, strings.NewReader("")), nil
		})},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Summarize(t.Context(), ask)
	if !errors.Is(err, summarize.ErrPermanent) || !strings.Contains(err.Error(), "redirects are not followed") {
		t.Errorf("got %v", err)
	}
	if len(hosts) != 1 || hosts[0] != "model.invalid" {
		t.Errorf("asked %v", hosts)
	}
}

// size: of an endless answer only a bounded part is read.
func size(t *testing.T, _ modeltest.API, open Open) {
	endless := &counted{}
	b, err := open(modelhttp.Options{
		BaseURL: "https://model.invalid", Model: "m",
		HTTPClient: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			return response(r, http.StatusOK, http.Header{}, endless), nil
		})},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Summarize(t.Context(), ask)
	if !errors.Is(err, summarize.ErrPermanent) || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("got %v", err)
	}
	if endless.n > 8<<20 {
		t.Errorf("read %d bytes", endless.n)
	}
}

// counted is an endless body.
type counted struct{ n int }

func (c *counted) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	c.n += len(p)
	return len(p), nil
}
