package server

import (
	"context"
	"strconv"

	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	"github.com/contextd/contextd/internal/assemble"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/records"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// RecordModelCall stores what the provider counted, and answers with the calibration learnt from it.
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
	learnt, repeated, err := s.engine.RecordCall(ctx, call)
	if err != nil {
		return nil, err
	}
	if !repeated {
		s.meter.Recorded(ctx, call)
	}
	return &contextdv1.RecordModelCallResponse{Calibration: learnt.Factor()}, nil
}

// ListModelCalls lists recorded calls, the oldest first.
func (s *Server) ListModelCalls(ctx context.Context, req *contextdv1.ListModelCallsRequest) (*contextdv1.ListModelCallsResponse, error) {
	token, err := decodePageToken(req.GetPageToken())
	if err != nil {
		return nil, err
	}
	after := uint64(0)
	if token != "" {
		if after, err = strconv.ParseUint(token, 10, 32); err != nil {
			return nil, &eventlog.InvalidError{Field: "page_token", Reason: "must be the next_page_token of an earlier page"}
		}
	}
	if _, err := s.existing(ctx, req.GetSessionId()); err != nil {
		return nil, err
	}
	page, next, err := records.CallsAfter(ctx, s.store, req.GetSessionId(), uint32(after), pageSize(req.GetPageSize()))
	if err != nil {
		return nil, err
	}
	out := &contextdv1.ListModelCallsResponse{}
	for _, c := range page {
		out.Calls = append(out.Calls, wire.CallToProto(c))
	}
	if next > 0 {
		out.NextPageToken = encodePageToken(strconv.FormatUint(uint64(next), 10))
	}
	return out, nil
}

// ExplainCall says what the model saw in a recorded call, or would see now if no call is recorded. It
// computes the projection again, and changes nothing.
func (s *Server) ExplainCall(ctx context.Context, req *contextdv1.ExplainCallRequest) (*contextdv1.ExplainCallResponse, error) {
	preview, err := s.preview(ctx, req.GetSessionId())
	if err != nil {
		return nil, err
	}
	out, err := s.engine.Explain(ctx, req.GetSessionId(), assemble.Asked{Call: req.GetCall(), Projection: req.GetProjectionId()}, req.GetText(), preview)
	if err != nil {
		return nil, err
	}
	resp := wire.ExplanationToProto(out)
	if r := out.Projection; r != nil && r.ID != "" {
		shadow, err := records.ShadowOf(ctx, s.store, req.GetSessionId(), r.AsOf, r.ID)
		if err != nil {
			return nil, err
		}
		resp.Projection.Shadow = wire.ShadowToProto(shadow)
	}
	return resp, nil
}
