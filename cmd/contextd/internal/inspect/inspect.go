// Package inspect serves the inspector: a page in the browser that shows sessions, and the
// reading methods of the API that the page calls. It changes nothing.
package inspect

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc"
)

// Options say whose sessions are shown, and to whom.
type Options struct {
	// API is where calls of the page go.
	API grpc.ClientConnInterface
	// Token, if set, is what calls have to bring. Where it is empty the API is given what they
	// bring, and judges it.
	Token string
	// Loopback says that only this machine reaches the page. Browsers that were led here by
	// another name are refused then: a page of another site could have had its name lead here.
	Loopback bool
	// SendTimeout is how long a browser may take no part of an answer; 0 is a minute.
	SendTimeout time.Duration
}

// maxRequestBytes bounds what a call of the page sends.
const maxRequestBytes = 64 << 10

// NewHandler returns what serves the page. Whoever it is served to sees the page itself, which
// has nothing of any session; its calls need what Options say.
func NewHandler(o Options) http.Handler {
	page := newPage()
	// Sites that a browser shows beside this one cannot have it make calls.
	calls := http.NewCrossOriginProtection().Handler(o.authorized(newReader(o.API, o.Token == "")))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w = newTimely(w, cmp.Or(o.SendTimeout, time.Minute))
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

// protect keeps a browser from running, loading or telling anything that the page is not made
// of. Pictures of messages are shown as blobs.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "+
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// Local reports whether a Host header names this machine and no name that others give out.
func Local(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// quoted is a short part of what a client sent, for a sentence in plain text.
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

// authorized holds calls to the token, if there is one.
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

// NewServer returns a server of the page. Answers of calls may go on for as long as a session
// does, for as long as they are taken: a limit on their time, or on that of reading a request, would
// end them.
func NewServer(o Options) *http.Server {
	return &http.Server{Handler: NewHandler(o), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute}
}
