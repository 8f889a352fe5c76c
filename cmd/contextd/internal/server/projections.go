package server

import (
	"context"

	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	"github.com/contextd/contextd/internal/projection"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// ListProjections lists recorded projections, newest first.
func (s *Server) ListProjections(ctx context.Context, req *contextdv1.ListProjectionsRequest) (*contextdv1.ListProjectionsResponse, error) {
	after, err := decodePageToken(req.GetPageToken())
	if err != nil {
		return nil, err
	}
	if _, err := s.existing(ctx, req.GetSessionId()); err != nil {
		return nil, err
	}
	records, next, err := s.engine.Projections(ctx, req.GetSessionId(), after, pageSize(req.GetPageSize()))
	if err != nil {
		return nil, err
	}
	out := &contextdv1.ListProjectionsResponse{}
	if next != "" {
		out.NextPageToken = encodePageToken(next)
	}
	for _, r := range records {
		converted, err := s.projection(ctx, req.GetSessionId(), r)
		if err != nil {
			return nil, err
		}
		out.Projections = append(out.Projections, converted)
	}
	return out, nil
}

// ReplayProjection makes a recorded projection again and compares.
func (s *Server) ReplayProjection(ctx context.Context, req *contextdv1.ReplayProjectionRequest) (*contextdv1.ReplayProjectionResponse, error) {
	if _, err := s.existing(ctx, req.GetSessionId()); err != nil {
		return nil, err
	}
	replay, err := s.engine.Replay(ctx, req.GetSessionId(), req.GetProjectionId())
	if err != nil {
		return nil, err
	}
	recorded, err := s.projection(ctx, req.GetSessionId(), replay.Recorded)
	if err != nil {
		return nil, err
	}
	replayed, err := s.projection(ctx, req.GetSessionId(), replay.Replayed)
	if err != nil {
		return nil, err
	}
	return &contextdv1.ReplayProjectionResponse{
		Same: replay.Same, Recorded: recorded, Replayed: replayed, Difference: replay.Difference,
	}, nil
}

// projection completes a record with what the log says of its pointers.
func (s *Server) projection(ctx context.Context, sessionID string, r projection.Record) (*contextdv1.Projection, error) {
	facts, err := s.engine.Pointers(ctx, sessionID, r)
	if err != nil {
		return nil, err
	}
	return wire.ProjectionToProto(r, facts), nil
}

// ResolvePointer gives back the raw body behind a pointer.
func (s *Server) ResolvePointer(ctx context.Context, req *contextdv1.ResolvePointerRequest) (*contextdv1.ResolvePointerResponse, error) {
	if _, err := s.existing(ctx, req.GetSessionId()); err != nil {
		return nil, err
	}
	event, block, err := s.engine.Resolve(ctx, req.GetSessionId(), req.GetPointer())
	if err != nil {
		return nil, err
	}
	out := &contextdv1.ResolvePointerResponse{Event: wire.EventToProto(event)}
	if block != nil {
		out.Block = wire.BlockToProto(block)
	}
	return out, nil
}
