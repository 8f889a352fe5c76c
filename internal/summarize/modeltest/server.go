package modeltest

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"time"
)

// Server is a fake of a model's endpoint. Its methods may be called from any
// goroutine.
type Server struct {
	// URL is the base URL of the Messages API; OpenAIURL returns that of chat completions.
	URL string

	settings settings
	gate     *gate
	http     *httptest.Server
	client   *http.Client
	done     chan struct{}
	close    sync.Once

	mu          sync.Mutex
	behaviour   Behaviour
	requests    []Request
	inFlight    int
	maxInFlight int
}

type settings struct {
	memory     bool
	delay      time.Duration
	retryAfter string
	key        string
}

// Option is an option of New.
type Option func(*settings)

// InMemory keeps the server off the network: only Client reaches it. It waits only for channels and timers, so that
// it runs inside a testing/synctest bubble.
func InMemory() Option { return func(s *settings) { s.memory = true } }

// Delay sets how long Slow takes; the default is two seconds.
func Delay(d time.Duration) Option { return func(s *settings) { s.delay = d } }

// RetryAfter sets the header's value under RateLimited; the default is "1", and empty sends no header.
func RetryAfter(value string) Option { return func(s *settings) { s.retryAfter = value } }

// Key refuses requests without this key.
func Key(key string) Option { return func(s *settings) { s.key = key } }

// New starts a server. It panics if there is no free loopback port, as httptest does. The caller must close it.
func New(b Behaviour, options ...Option) *Server {
	s := &Server{
		settings:  settings{delay: 2 * time.Second, retryAfter: "1"},
		done:      make(chan struct{}),
		behaviour: OK,
	}
	for _, option := range options {
		option(&s.settings)
	}
	var err error
	if s.gate, err = newGate(s.settings.memory); err != nil {
		panic(err)
	}
	s.http = &httptest.Server{Listener: s.gate, Config: &http.Server{Handler: s.routes()}}
	s.http.Start()
	s.URL = s.http.URL
	transport := &http.Transport{}
	if s.settings.memory {
		transport.DialContext = s.gate.dial
	}
	s.client = &http.Client{Transport: transport}
	s.Switch(b)
	return s
}

// OpenAIURL returns the base URL of the chat completions API.
func (s *Server) OpenAIURL() string { return s.URL + "/v1" }

// Client returns a client that reaches the server.
func (s *Server) Client() *http.Client { return s.client }

// Switch changes the behaviour for later requests. Down also breaks the connections that clients keep; clients other
// than Client may notice that only with their next request. It panics if a server that was down cannot get its port
// again.
func (s *Server) Switch(b Behaviour) {
	s.mu.Lock()
	s.behaviour = b
	s.mu.Unlock()
	if err := s.gate.set(b != Down); err != nil {
		panic(err)
	}
	if b == Down {
		s.client.CloseIdleConnections()
		s.http.CloseClientConnections()
	}
}

// Close ends requests that are waiting and stops the server.
func (s *Server) Close() {
	s.close.Do(func() {
		close(s.done)
		s.client.CloseIdleConnections()
		s.http.Close()
	})
}

// Requests returns the received requests in order, including refused ones.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// InFlight returns how many requests wait for an answer.
func (s *Server) InFlight() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inFlight
}

// MaxInFlight returns the most requests that ever waited at once.
func (s *Server) MaxInFlight() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.maxInFlight
}

// enter notes a request and returns how to answer it.
func (s *Server) enter(r Request) Behaviour {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	s.inFlight++
	s.maxInFlight = max(s.maxInFlight, s.inFlight)
	return s.behaviour
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight--
}
