package modeltest

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) { s.serve(OpenAI, w, r) })
	mux.HandleFunc("POST /v1/messages", func(w http.ResponseWriter, r *http.Request) { s.serve(Anthropic, w, r) })
	return mux
}

func (s *Server) serve(api API, w http.ResponseWriter, r *http.Request) {
	req, invalid := read(api, r)
	behaviour := s.enter(req)
	defer s.leave()
	switch {
	case s.settings.key != "" && req.key() != s.settings.key:
		write(w, failure(api, Unauthorized))
		return
	case invalid != nil:
		write(w, malformed(api, invalid))
		return
	}
	switch behaviour {
	case Hang:
		s.wait(r, nil)
		return
	case Upgrade:
		upgrade(w)
		return
	case Slow:
		timer := time.NewTimer(s.settings.delay)
		defer timer.Stop()
		if !s.wait(r, timer.C) {
			return
		}
	}
	if behaviour == RateLimited && s.settings.retryAfter != "" {
		w.Header().Set("Retry-After", s.settings.retryAfter)
	}
	write(w, s.answer(req, behaviour))
}

// wait returns true when c is ready, and false if the client or the server ends first.
func (s *Server) wait(r *http.Request, c <-chan time.Time) bool {
	select {
	case <-c:
		return true
	case <-r.Context().Done():
	case <-s.done:
	}
	return false
}

// upgrade switches the connection to another protocol, and keeps it until the client closes it.
func upgrade(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n")
	_, _ = io.Copy(io.Discard, conn)
}

type answer struct {
	status      int
	contentType string
	body        string
}

func write(w http.ResponseWriter, a answer) {
	if a.contentType == "" {
		a.contentType = "application/json"
	}
	w.Header().Set("Content-Type", a.contentType)
	w.WriteHeader(a.status)
	_, _ = io.WriteString(w, a.body)
}

// answer returns a behaviour's answer to a valid request.
func (s *Server) answer(r Request, b Behaviour) answer {
	switch b {
	case Failing, Overloaded, RateLimited, Unauthorized, UnknownModel, ContextExceeded:
		return failure(r.API, b)
	case NotJSON:
		return answer{http.StatusOK, "text/plain; charset=utf-8", "upstream connect error"}
	case HTML:
		return answer{http.StatusOK, "text/html", "<!doctype html><title>Sign in</title><p>Please sign in."}
	case Truncated:
		whole := completion(r, summary(r), OK)
		whole.body = whole.body[:len(whole.body)/2]
		return whole
	case WrongShape:
		return answer{http.StatusOK, "", `{"result":{"output":"` + summaryOf(r.Prompt) + `"},"choices":[],"content":{}}`}
	case Echo:
		return completion(r, r.Prompt, OK)
	case Empty:
		return completion(r, "", OK)
	case Long:
		return completion(r, strings.Repeat("and then the work went on ", int(max(r.MaxTokens, 1000))), OK)
	case Thinking:
		return completion(r, "<think>\nThe user wants a summary.\n</think>\n\n"+summary(r), OK)
	case CutOff:
		text := summary(r)
		return completion(r, text[:len(text)/2], CutOff)
	case Refusal:
		return completion(r, "I cannot help with that.", Refusal)
	}
	return completion(r, summary(r), OK)
}

// summary returns the default text of the model.
func summary(r Request) string { return summaryOf(r.Prompt) }

func summaryOf(prompt string) string {
	return fmt.Sprintf("Summary %x: the agent worked through %d lines of history; nothing is open.",
		sha256.Sum256([]byte(prompt)), strings.Count(prompt, "\n")+1)
}
