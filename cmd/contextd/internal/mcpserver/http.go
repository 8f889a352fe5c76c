package mcpserver

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/semaphore"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// SessionHeader is the HTTP header that names a request's session.
const SessionHeader = "Contextd-Session"

// HTTP returns the handler of a server over streamable HTTP, at /mcp. Requests are for sessionID; if that is
// empty, each for the session that its header names. No state is kept between requests.
func HTTP(daemon contextdv1.ContextServiceClient, sessionID, version string) http.Handler {
	daemon = turns{daemon, semaphore.NewWeighted(callsAtOnce)}
	of := func(r *http.Request) string {
		if sessionID != "" {
			return sessionID
		}
		return r.Header.Get(SessionHeader)
	}
	streamable := mcp.NewStreamableHTTPHandler(
		func(r *http.Request) *mcp.Server { return New(daemon, of(r), version) },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true, MaxRequestBodyBytes: longestRequest},
	)
	handled := bounded(streamable)
	mux := http.NewServeMux()
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		switch asked := r.Header.Get(SessionHeader); {
		case of(r) == "":
			http.Error(w, fmt.Sprintf("the header %s must name the session", SessionHeader), http.StatusBadRequest)
		case asked != "" && asked != of(r):
			http.Error(w, fmt.Sprintf("the header %s names another session than the one that is served here", SessionHeader), http.StatusForbidden)
		default:
			handled.ServeHTTP(w, r)
		}
	})
	return mux
}

// Serve answers requests until ctx ends, and then finishes those that have begun.
func Serve(ctx context.Context, l net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: callTimeout,
		WriteTimeout: 2 * callTimeout, IdleTimeout: 2 * callTimeout, MaxHeaderBytes: 64 << 10,
	}
	ended := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout/6)
		defer cancel()
		ended <- server.Shutdown(within)
	})
	if err := server.Serve(l); stop() {
		return err // it failed on its own
	}
	return <-ended
}
