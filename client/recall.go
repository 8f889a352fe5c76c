package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// RecallTools are tools by which a model reads the log of its own session.
type RecallTools struct {
	// Schemas is a JSON array of the tools for the member tools of a request in the format. Empty: no
	// format was asked for.
	Schemas json.RawMessage
	// Tools are the same tools, independent of a format.
	Tools []*contextdv1.RecallTool

	client *Client
	asked  *contextdv1.ListRecallToolsRequest
}

// RecallTools lists the tools of a session. The request may name the tool that returns a pointer's
// body; otherwise the session's policy names it, or it is recall.
func (c *Client) RecallTools(ctx context.Context, req *contextdv1.ListRecallToolsRequest) (*RecallTools, error) {
	resp, err := c.ListRecallTools(ctx, req)
	if err != nil {
		return nil, err
	}
	return &RecallTools{Schemas: resp.GetToolsJson(), Tools: resp.GetTools(), client: c, asked: cmp.Or(req, &contextdv1.ListRecallToolsRequest{})}, nil
}

// Has reports whether one of the tools has this name.
func (t *RecallTools) Has(name string) bool {
	return slices.ContainsFunc(t.Tools, func(tool *contextdv1.RecallTool) bool { return tool.GetName() == name })
}

// Call runs a model's call with the arguments as the model wrote them. A mistake of the model is
// described in the result's text, for the model.
func (t *RecallTools) Call(ctx context.Context, name string, arguments []byte) (*contextdv1.CallRecallToolResponse, error) {
	if t.client == nil {
		return nil, errors.New("these recall tools are of no client: Client.RecallTools makes them")
	}
	return t.client.CallRecallTool(ctx, &contextdv1.CallRecallToolRequest{
		SessionId: t.asked.GetSessionId(), Name: name, ArgumentsJson: arguments, RecallTool: t.asked.RecallTool,
	})
}
