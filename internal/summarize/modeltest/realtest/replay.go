package realtest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/summarize"
	"github.com/contextd/contextd/internal/summarize/modelhttp"
	"github.com/contextd/contextd/internal/summarize/modeltest"
)

// Replay tests a backend against every recorded exchange of its API: it must send the recorded request, and the
// result of the recorded answer must be as expected.
func Replay(t *testing.T, api modeltest.API, open func(modelhttp.Options) (summarize.Backend, error)) {
	all, err := modeltest.Exchanges()
	if err != nil {
		t.Fatal(err)
	}
	replayed := 0
	for name, e := range all {
		if e.API != api {
			continue
		}
		replayed++
		t.Run(name, func(t *testing.T) {
			var asked struct{ Model string }
			if err := json.Unmarshal(e.Request.Body, &asked); err != nil {
				t.Fatal(err)
			}
			base := "http://model.invalid"
			if api == modeltest.OpenAI {
				base += "/v1"
			}
			recorder := &modeltest.Recorder{Base: player{e.Response}}
			b, err := open(modelhttp.Options{
				BaseURL: base, Model: asked.Model, APIKey: modelhttp.Literal("key"), MaxAttempts: 1,
				HTTPClient: &http.Client{Transport: recorder},
			})
			if err != nil {
				t.Fatal(err)
			}
			out, err := b.Summarize(t.Context(), request(e.Case))
			check(t, e.Case, out, err)
			if now := recorder.Last().Request; !same(now, e.Request) {
				t.Errorf("sent %s %v %s\nrecorded %s %v %s", now.Path, now.Headers, now.Body,
					e.Request.Path, e.Request.Headers, e.Request.Body)
			}
		})
	}
	if replayed == 0 {
		t.Errorf("no exchange of the %s API is recorded", api)
	}
}

func same(a, b modeltest.ExchangeRequest) bool {
	if a.Path != b.Path || len(a.Headers) != len(b.Headers) {
		return false
	}
	for name, value := range a.Headers {
		if b.Headers[name] != value {
			return false
		}
	}
	var x, y bytes.Buffer
	return json.Compact(&x, a.Body) == nil && json.Compact(&y, b.Body) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// player gives the same answer to every request.
type player struct{ response modeltest.ExchangeResponse }

func (p player) RoundTrip(r *http.Request) (*http.Response, error) {
	header := http.Header{}
	for name, value := range p.response.Headers {
		header.Set(name, value)
	}
	return &http.Response{
		StatusCode: p.response.Status, Header: header, Request: r,
		Body: io.NopCloser(strings.NewReader(string(p.response.Body))),
	}, nil
}
