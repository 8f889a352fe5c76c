package modeltest

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Exchange is a request to a real server and its answer, without what says nothing about the protocol, above all the
// key.
type Exchange struct {
	// Server is the name and the version of the server.
	Server   string           `json:"server"`
	API      API              `json:"api"`
	Case     Behaviour        `json:"case"`
	Request  ExchangeRequest  `json:"request"`
	Response ExchangeResponse `json:"response"`
}

// ExchangeRequest is the half that contextd wrote.
type ExchangeRequest struct {
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers"`
	Body    json.RawMessage   `json:"body"`
}

// ExchangeResponse is the half that the server wrote.
type ExchangeResponse struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    json.RawMessage   `json:"body"`
}

//go:embed testdata
var recorded embed.FS

// Exchanges returns the recorded exchanges by file name: API/case.server.json.
func Exchanges() (map[string]Exchange, error) {
	out := map[string]Exchange{}
	err := fs.WalkDir(recorded, "testdata", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".json" {
			return err
		}
		raw, err := recorded.ReadFile(name)
		if err != nil {
			return err
		}
		var e Exchange
		if err := json.Unmarshal(raw, &e); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		out[strings.TrimPrefix(name, "testdata/")] = e
		return nil
	})
	return out, err
}

// Recorder is an http.RoundTripper that keeps the last exchange.
type Recorder struct {
	Base http.RoundTripper
	last Exchange
}

// RoundTrip implements http.RoundTripper.
func (r *Recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	sent, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	copied := req.Clone(req.Context())
	copied.Body = io.NopCloser(bytes.NewReader(sent))
	resp, err := r.Base.RoundTrip(copied)
	if err != nil {
		return nil, err
	}
	got, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(got))
	r.last = Exchange{
		Request: ExchangeRequest{
			Path: req.URL.Path, Body: sent,
			Headers: some(req.Header, "Content-Type", "Authorization", "X-Api-Key", "Anthropic-Version"),
		},
		Response: ExchangeResponse{
			Status: resp.StatusCode, Body: got,
			Headers: some(resp.Header, "Content-Type", "Retry-After"),
		},
	}
	return resp, nil
}

// some returns the headers with these names, if they are set, with credentials concealed.
func some(h http.Header, names ...string) map[string]string {
	out := map[string]string{}
	for _, name := range names {
		value := h.Get(name)
		switch {
		case value == "":
		case name == "Authorization":
			out[name] = "Bearer [secret]"
		case name == "X-Api-Key":
			out[name] = "[secret]"
		default:
			out[name] = value
		}
	}
	return out
}

// Last returns the last exchange, without the fields that Save sets.
func (r *Recorder) Last() Exchange { return r.last }

// Save writes the last exchange under dir, in the form that Exchanges reads. server is a name, a space and a version.
func (r *Recorder) Save(dir, server string, api API, c Behaviour) error {
	e := r.last
	e.Server, e.API, e.Case = server, api, c
	var raw bytes.Buffer
	enc := json.NewEncoder(&raw)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(e); err != nil {
		return err
	}
	name, _, _ := strings.Cut(server, " ")
	folder := filepath.Join(dir, string(api))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, string(c)+"."+name+".json"), raw.Bytes(), 0o644)
}
