package server

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	"github.com/contextd/contextd/internal/assemble"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/pointers"
	"github.com/contextd/contextd/internal/records"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// ListProjections lists recorded projections, oldest first.
func (s *Server) ListProjections(ctx context.Context, req *contextdv1.ListProjectionsRequest) (*contextdv1.ListProjectionsResponse, error) {
	after, err := decodePageToken(req.GetPageToken())
	if err != nil {
		return nil, err
	}
	if _, err := s.existing(ctx, req.GetSessionId()); err != nil {
		return nil, err
	}
	if err := s.reserveEvent(ctx); err != nil {
		return nil, err
	}
	out := &contextdv1.ListProjectionsResponse{}
	facts := pointers.NewReader(s.store, req.GetSessionId())
	room, last := maxPageBytes, ""
	shadow, stop := records.Shadows(ctx, s.store, req.GetSessionId(), after)
	defer stop()
	for r, err := range records.After(ctx, s.store, req.GetSessionId(), after) {
		if err != nil {
			return nil, err
		}
		if len(out.GetProjections()) == pageSize(req.GetPageSize()) {
			out.NextPageToken = encodePageToken(last)
			return out, nil
		}
		converted, err := listedProjection(ctx, r, facts, req.GetBrief())
		if err != nil {
			return nil, err
		}
		of, err := shadow(r)
		if err != nil {
			return nil, err
		}
		converted.Shadow = wire.ShadowToProto(of)
		if room -= proto.Size(converted) + entryOverhead; room < 0 && last != "" {
			out.NextPageToken = encodePageToken(last)
			return out, nil
		}
		out.Projections, last = append(out.GetProjections(), converted), r.ID
	}
	return out, nil
}

// listedProjection is a record as lists show it; unless brief, with its pointers.
func listedProjection(ctx context.Context, r records.Projection, facts *pointers.Reader, brief bool) (*contextdv1.Projection, error) {
	if brief {
		return wire.BriefProjectionToProto(r), nil
	}
	completed, err := facts.Read(ctx, r.Pointers)
	if err != nil {
		return nil, err
	}
	return wire.RecordedToProto(r, completed), nil
}

// A page of entries that may be large stays below 1 MiB, with its token and frame. An entry has a tag and
// a length.
const (
	maxPageBytes  = 1<<20 - 4<<10
	entryOverhead = 8
)

// ReplayProjection rebuilds a recorded projection and compares it with the record.
func (s *Server) ReplayProjection(ctx context.Context, req *contextdv1.ReplayProjectionRequest) (*contextdv1.ReplayProjectionResponse, error) {
	_, out, err := s.replay(ctx, req.GetSessionId(), req.GetProjectionId())
	return out, err
}

func (s *Server) replay(ctx context.Context, sessionID, projectionID string) (assemble.Replay, *contextdv1.ReplayProjectionResponse, error) {
	if _, err := s.existing(ctx, sessionID); err != nil {
		return assemble.Replay{}, nil, err
	}
	if projectionID == "" {
		var err error
		if projectionID, err = records.Newest(ctx, s.store, sessionID); err != nil {
			return assemble.Replay{}, nil, err
		}
		if projectionID == "" {
			return assemble.Replay{}, nil, &eventlog.NotFoundError{Kind: "projection", Name: "of " + sessionID}
		}
	}
	replay, err := s.engine.Replay(ctx, sessionID, projectionID)
	if err != nil {
		return replay, nil, err
	}
	recorded, err := s.projection(ctx, sessionID, replay.Recorded)
	if err != nil {
		return replay, nil, err
	}
	replayed, err := s.projection(ctx, sessionID, replay.Replayed)
	if err != nil {
		return replay, nil, err
	}
	return replay, &contextdv1.ReplayProjectionResponse{
		Same: replay.Same, Recorded: recorded, Replayed: replayed, Difference: replay.Difference,
	}, nil
}

// RenderProjection sends the messages of a recorded projection.
func (s *Server) RenderProjection(req *contextdv1.RenderProjectionRequest, stream grpc.ServerStreamingServer[contextdv1.RenderProjectionResponse]) error {
	replay, out, err := s.replay(stream.Context(), req.GetSessionId(), req.GetProjectionId())
	if err != nil {
		return err
	}
	if err := stream.Send(&contextdv1.RenderProjectionResponse{Part: &contextdv1.RenderProjectionResponse_Replay{Replay: out}}); err != nil {
		return err
	}
	return sendMessages(0, replay.Messages, req.GetMessageForm(), func(c *contextdv1.MessageChunk) error {
		return stream.Send(&contextdv1.RenderProjectionResponse{Part: &contextdv1.RenderProjectionResponse_Chunk{Chunk: c}})
	})
}

// projection completes a record with the pointers' facts from the log.
func (s *Server) projection(ctx context.Context, sessionID string, r records.Projection) (*contextdv1.Projection, error) {
	facts, err := pointers.NewReader(s.store, sessionID).Read(ctx, r.Pointers)
	if err != nil {
		return nil, err
	}
	shadow, err := records.ShadowOf(ctx, s.store, sessionID, r.AsOf, r.ID)
	out := wire.RecordedToProto(r, facts)
	out.Shadow = wire.ShadowToProto(shadow)
	return out, err
}

// ResolvePointer returns the raw body of a pointer.
func (s *Server) ResolvePointer(ctx context.Context, req *contextdv1.ResolvePointerRequest) (*contextdv1.ResolvePointerResponse, error) {
	if _, err := s.existing(ctx, req.GetSessionId()); err != nil {
		return nil, err
	}
	if err := s.reserveEvent(ctx); err != nil {
		return nil, err
	}
	event, block, err := pointers.Resolve(ctx, s.store, req.GetSessionId(), req.GetPointer())
	if err != nil {
		return nil, err
	}
	out := &contextdv1.ResolvePointerResponse{Event: wire.EventToProto(event)}
	if block != nil {
		out.Block = wire.BlockToProto(block)
	}
	return out, nil
}
