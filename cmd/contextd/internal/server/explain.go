package server

import (
	"context"

	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	"github.com/contextd/contextd/internal/assemble"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// CallExplainer says what a model saw.
type CallExplainer interface {
	// Explain looks for a text, or the block that a pointer names, in a recorded call,
	// number 0 the newest.
	Explain(ctx context.Context, sessionID string, number uint32, text string) (assemble.Explanation, error)
}

// ExplainCall says what the model saw in a recorded call. It computes the call's
// projection again, and changes nothing.
func (s *Server) ExplainCall(ctx context.Context, req *contextdv1.ExplainCallRequest) (*contextdv1.ExplainCallResponse, error) {
	if _, err := s.existing(ctx, req.GetSessionId()); err != nil {
		return nil, err
	}
	out, err := s.engine.Explain(ctx, req.GetSessionId(), req.GetCall(), req.GetText())
	if err != nil {
		return nil, err
	}
	return wire.ExplanationToProto(out), nil
}
