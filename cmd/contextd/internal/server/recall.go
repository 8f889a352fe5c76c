package server

import (
	"context"

	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/explain"
	"github.com/contextd/contextd/internal/recall"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// ListRecallTools lists the tools of a session's model. The session need not exist yet.
func (s *Server) ListRecallTools(ctx context.Context, req *contextdv1.ListRecallToolsRequest) (*contextdv1.ListRecallToolsResponse, error) {
	format, err := wire.FormatToDomain(req.GetFormat())
	if err != nil {
		return nil, err
	}
	session, err := s.settingsOf(ctx, req.GetSessionId())
	if err != nil {
		return nil, err
	}
	policy, err := s.policy(session.settings.policy, nil)
	if err != nil {
		return nil, err
	}
	tools := recall.Tools(recallName(policy, req.GetRecallTool()))
	out := &contextdv1.ListRecallToolsResponse{}
	for _, t := range tools {
		out.Tools = append(out.GetTools(), &contextdv1.RecallTool{Name: t.Name, Description: t.Description, InputSchemaJson: t.Schema.JSON()})
	}
	if format.Tools != nil {
		out.ToolsJson = format.Tools(tools)
	}
	return out, nil
}

// recallName returns the name by which the model calls the tool that returns a pointer's body.
func recallName(policy assemble.Policy, asked string) string {
	switch {
	case asked != "":
		return asked
	case policy.Reduction.Recall != "":
		return string(policy.Reduction.Recall)
	default:
		return recall.Recall
	}
}

// CallRecallTool runs a model's call. It changes nothing.
func (s *Server) CallRecallTool(ctx context.Context, req *contextdv1.CallRecallToolRequest) (*contextdv1.CallRecallToolResponse, error) {
	preview, err := s.preview(ctx, req.GetSessionId())
	if err != nil {
		return nil, err
	}
	session, err := s.store.Session(ctx, req.GetSessionId())
	if err != nil {
		return nil, err
	}
	resolved, err := preview.Budget.Resolve(s.models)
	if err != nil {
		return nil, err
	}
	gauge, err := s.gauges(resolved.Tokenizer)
	if err != nil {
		return nil, err
	}
	of := recall.Session{
		ID: req.GetSessionId(), Log: s.store, Name: recallName(preview.Policy, req.GetRecallTool()),
		Gauge: gauge, PageTokens: recall.PageTokens(preview.Policy.Reduction.Clipping.Limit(resolved)),
		Explain: func(ctx context.Context, call uint32, text string) (explain.Explanation, error) {
			return s.engine.Explain(ctx, req.GetSessionId(), assemble.Asked{Call: call}, text, preview)
		},
	}
	if req.GetName() != recall.Explain { // which takes its own memory and turn
		if err := s.reserveEvent(ctx); err != nil {
			return nil, err
		}
		done, err := s.turns.Take(ctx)
		if err != nil {
			return nil, err
		}
		defer done()
	}
	result, err := of.Call(ctx, req.GetName(), string(req.GetArgumentsJson()))
	if err == nil {
		_, err = s.stillThere(ctx, session, wire.MarkToProto(session)) // a search reads the log in parts
	}
	if err != nil {
		return nil, err
	}
	return &contextdv1.CallRecallToolResponse{Text: result.Text, IsError: result.Failed}, nil
}
