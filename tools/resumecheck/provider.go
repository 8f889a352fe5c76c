package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Provider is a fake model endpoint on loopback, and the CLI's proxy for every other host. It answers each
// request for a model with "ok", and keeps the request.
type Provider struct {
	server   *http.Server
	listener net.Listener
	mu       sync.Mutex
	requests []Request
	outside  []string
	unknown  []string
}

// Request is a request to the model.
type Request struct {
	Path string
	Body []byte
}

// StartProvider listens on a free port.
func StartProvider() (*Provider, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen on loopback: %w", err)
	}
	p := &Provider{listener: listener}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: 10 * time.Second}
	go p.server.Serve(listener) //nolint:errcheck // Close ends it
	return p, nil
}

// URL is where it listens, without a path.
func (p *Provider) URL() string { return "http://" + p.listener.Addr().String() }

// Close stops it and aborts its open requests.
func (p *Provider) Close() error { return p.server.Close() }

// Requests are the requests to the model so far.
func (p *Provider) Requests() []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Request{}, p.requests...)
}

// Outside are the other hosts that the CLI tried to reach.
func (p *Provider) Outside() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{}, p.outside...)
}

// Unknown are requests that the fake does not support, by method and path.
func (p *Provider) Unknown() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{}, p.unknown...)
}

// answers are the answers to requests for a model, by the end of the path.
var answers = map[string]func(*events, []byte){
	"/responses":        answerResponses,
	"/messages":         answerMessages,
	"/chat/completions": answerChat,
}

func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the CLI closed the connection
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Method == http.MethodConnect || r.URL.IsAbs() {
		p.outside = append(p.outside, r.Host)
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	for end, answer := range answers {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, end) {
			p.requests = append(p.requests, Request{Path: r.URL.Path, Body: body})
			answer(&events{w: w}, body)
			return
		}
	}
	if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/responses") {
		w.WriteHeader(http.StatusUpgradeRequired) // it does not support WebSockets
		return
	}
	if strings.HasSuffix(r.URL.Path, "/count_tokens") {
		fmt.Fprint(w, `{"input_tokens":1}`)
		return
	}
	p.unknown = append(p.unknown, r.Method+" "+r.URL.Path)
	w.WriteHeader(http.StatusNotFound)
}

// object is a JSON object.
type object = map[string]any

// events writes server-sent events.
type events struct {
	w     http.ResponseWriter
	begun bool
}

func (e *events) begin() {
	if !e.begun {
		e.w.Header().Set("Content-Type", "text/event-stream")
	}
	e.begun = true
}

// send writes an event, which is named after its type, if it has one.
func (e *events) send(data object) {
	e.begin()
	if name, ok := data["type"].(string); ok {
		fmt.Fprintf(e.w, "event: %s\n", name)
	}
	line, err := json.Marshal(data)
	if err != nil {
		panic(err) // strings, numbers and lists of them always encode
	}
	e.text(string(line))
}

func (e *events) text(data string) {
	e.begin()
	fmt.Fprintf(e.w, "data: %s\n\n", data)
}
