// Package mcpserver offers a session's recall tools over the Model Context Protocol.
package mcpserver

import (
	"context"
	"encoding/json"
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
