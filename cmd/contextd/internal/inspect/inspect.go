// Package inspect serves the inspector: a web page that shows sessions, and the read-only methods of the API
// that the page calls.
package inspect

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc"
)

// Options say whose sessions are shown, and to whom.
type Options struct {
	// API is the connection that the page's calls are passed on to.
	API grpc.ClientConnInterface
	// Token, if set, is the bearer token that calls must have. If it is empty, the caller's token is passed
	// on, and the API checks it.
	Token string
	// Loopback is set where only this machine can reach the page. Requests under any other host name are
	// refused then, since a foreign site may point its name at this address (DNS rebinding).
	Loopback bool
	// SendTimeout bounds how long a browser may take to send a request, and to receive the next part of an answer; 0
	// is a minute.
	SendTimeout time.Duration
}

// maxRequestBytes bounds a request of the page.
const maxRequestBytes = 64 << 10

// arrived passes on requests once their body has arrived, which may take as long as the timeout. The timeout of
// http.Server cannot be used, because it would also end long answers.
func arrived(next http.Handler, timeout time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Now().Add(timeout)) // fails only without a network connection
		body, err := io.ReadAll(io.LimitReader(r.Body, maxRequestBytes+1<<10))
		if err != nil {
			w.Header().Set("Connection", "close") // the server would wait for the rest
			http.Error(w, "The request did not arrive.", http.StatusRequestTimeout)
			return
		}
		_ = control.SetReadDeadline(time.Time{})
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// NewHandler serves the page and its calls. Anybody may load the page, which contains no session; its calls
// need what Options require.
func NewHandler(o Options) http.Handler {
	page := newPage()
	// Pages of other origins cannot make calls through the browser.
	timeout := cmp.Or(o.SendTimeout, time.Minute)
	calls := http.NewCrossOriginProtection().Handler(o.authorized(arrived(newReader(o.API, o.Token == ""), timeout)))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w = newTimely(w, timeout)
		protect(w.Header())
		switch {
		case o.Loopback && !Local(r.Host):
			http.Error(w, "The inspector answers to localhost and to loopback addresses, not to "+quoted(r.Host)+".", http.StatusMisdirectedRequest)
		case r.Method == http.MethodGet || r.Method == http.MethodHead:
			page.ServeHTTP(w, r)
		case r.Method != http.MethodPost:
			w.Header().Set("Allow", "GET, HEAD, POST")
			http.Error(w, "The inspector only reads.", http.StatusMethodNotAllowed)
		default:
			w.Header().Set("Cache-Control", "no-store")
			calls.ServeHTTP(w, r)
		}
	})
}

// protect restricts the browser to the page's own scripts, styles and calls. Pictures of messages are blobs.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "+
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// Local reports whether a Host header is localhost or a loopback address.
func Local(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// quoted is the beginning of a client's text, made safe for a plain-text sentence.
func quoted(s string) string {
	const most = 64
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s[:min(len(s), most)])
	return `"` + clean + `"`
}

// authorized refuses calls without the token, if one is set.
func (o Options) authorized(next http.Handler) http.Handler {
	if o.Token == "" {
		return next
	}
	want := sha256.Sum256([]byte("Bearer " + o.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			http.Error(w, "The token is missing or not this inspector's. Open the address that contextd inspect printed.", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// NewServer returns a server of the page. It has no timeouts for whole requests and answers, since an answer
// may last as long as a session. SendTimeout bounds each part.
func NewServer(o Options) *http.Server {
	return &http.Server{Handler: NewHandler(o), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute}
}
