package server

import (
	"context"

	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// CallRecorder keeps what runtimes report of model calls.
type CallRecorder interface {
	// RecordCall returns what is known of the call's model with it; durable on
	// return.
	RecordCall(ctx context.Context, c assemble.Call) (budget.Calibration, error)
}

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
	learnt, err := s.engine.RecordCall(ctx, call)
	if err != nil {
		return nil, err
	}
	return &contextdv1.RecordModelCallResponse{Calibration: learnt.Factor()}, nil
}
