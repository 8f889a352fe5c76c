package server

import (
	"context"

	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/render"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// RecordModelCall keeps what the provider counted, and answers with what was
// learnt.
func (s *Server) RecordModelCall(ctx context.Context, req *contextdv1.RecordModelCallRequest) (*contextdv1.RecordModelCallResponse, error) {
	if err := s.refuseDraining(); err != nil {
		return nil, err
	}
	call, err := wire.CallToDomain(req)
	if err != nil {
		return nil, err
	}
	if err := s.quotas.grow(ctx, 0); err != nil {
		return nil, err
	}
	learnt, err := s.engine.RecordCall(ctx, call)
	if err != nil {
		return nil, err
	}
	s.meter.Recorded(ctx, call)
	return &contextdv1.RecordModelCallResponse{Calibration: learnt.Factor()}, nil
}

// ExplainCall says what the model saw in a recorded call, or would see where none is
// recorded. It computes the projection again, and changes nothing.
func (s *Server) ExplainCall(ctx context.Context, req *contextdv1.ExplainCallRequest) (*contextdv1.ExplainCallResponse, error) {
	session, err := s.existing(ctx, req.GetSessionId())
	if err != nil {
		return nil, err
	}
	policy, err := s.policy(session.policy, nil)
	if err != nil {
		return nil, err
	}
	out, err := s.engine.Explain(ctx, req.GetSessionId(), req.GetCall(), req.GetText(), assemble.Request{
		SessionID: req.GetSessionId(), Budget: s.spec(session, nil, nil, render.NameContextd), Policy: policy, Preview: true,
	})
	if err != nil {
		return nil, err
	}
	return wire.ExplanationToProto(out), nil
}
