// Package mcpserver offers a session's recall tools over the Model Context Protocol.
package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/contextd/contextd/internal/recall"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// callTimeout bounds a call to the daemon.
const callTimeout = time.Minute

// instructions are for the model. Some hosts show them to it.
const instructions = "These tools read the log of this conversation, of which parts may have been shortened or left out to save " +
	"space. Where a part says ctx: and a number, recall returns it in full."

// New returns an MCP server for the recall tools of a session. The daemon runs the tools.
func New(daemon contextdv1.ContextServiceClient, sessionID, version string) *mcp.Server {
	server := mcp.NewServer(
		&mcp.Implementation{Name: "contextd", Title: "contextd", Version: version},
		&mcp.ServerOptions{Instructions: instructions, Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}},
	)
	for _, t := range recall.Tools(recall.Recall) {
		closed := false
		server.AddTool(&mcp.Tool{
			Name: t.Name, Description: t.Description, InputSchema: json.RawMessage(t.Schema.JSON()),
			Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: &closed},
		}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return call(ctx, daemon, &contextdv1.CallRecallToolRequest{SessionId: sessionID, Name: t.Name, ArgumentsJson: req.Params.Arguments})
		})
	}
	return server
}

// call runs a tool. Errors are returned to the model as text, since it can go on without the tool.
func call(ctx context.Context, daemon contextdv1.ContextServiceClient, req *contextdv1.CallRecallToolRequest) (*mcp.CallToolResult, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := daemon.CallRecallTool(ctx, req)
	if err != nil {
		resp = &contextdv1.CallRecallToolResponse{Text: "[contextd: " + sentence(err) + "]", IsError: true}
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: resp.GetText()}}, IsError: resp.GetIsError()}, nil
}

func sentence(err error) string {
	what := status.Convert(err).Message()
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.ResourceExhausted:
		return "the log cannot be read now (" + what + "); try once more later, or go on without it"
	case codes.Unimplemented:
		return "the daemon is older than this program and has no such tools; go on without them"
	case codes.NotFound: // the tools' own answers report unknown pointers and texts
		return what + ": its harness has appended nothing yet, or these tools were started for a session of another name; tell the user, and go on without the log"
	default:
		return "the log cannot be read: " + what + "; go on without it"
	}
}

// SessionHeader is the HTTP header that names a request's session.
const SessionHeader = "Contextd-Session"

// HTTP returns the handler of a server over streamable HTTP, at /mcp. Requests are for sessionID; if that is
// empty, each for the session that its header names. No state is kept between requests.
func HTTP(daemon contextdv1.ContextServiceClient, sessionID, version string) http.Handler {
	of := func(r *http.Request) string {
		if sessionID != "" {
			return sessionID
		}
		return r.Header.Get(SessionHeader)
	}
	streamable := mcp.NewStreamableHTTPHandler(
		func(r *http.Request) *mcp.Server { return New(daemon, of(r), version) },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true, MaxRequestBodyBytes: 1 << 20},
	)
	mux := http.NewServeMux()
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		switch asked := r.Header.Get(SessionHeader); {
		case of(r) == "":
			http.Error(w, fmt.Sprintf("the header %s must name the session", SessionHeader), http.StatusBadRequest)
		case asked != "" && asked != of(r):
			http.Error(w, fmt.Sprintf("the header %s names another session than the one that is served here", SessionHeader), http.StatusForbidden)
		default:
			streamable.ServeHTTP(w, r)
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
