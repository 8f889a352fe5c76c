package server

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	"github.com/contextd/contextd/internal/assemble"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/memory"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// AssembleContext sends the context of the next model call.
func (s *Server) AssembleContext(req *contextdv1.AssembleContextRequest, stream grpc.ServerStreamingServer[contextdv1.AssembleContextResponse]) error {
	ctx := eventlog.OneCall(stream.Context())
	if err := s.refuseDraining(); err != nil {
		return err
	}
	format, err := wire.FormatToDomain(req.GetFormat())
	if err != nil {
		return err
	}
	forPolicy, err := s.takePolicy(ctx, req.GetSessionId(), req.GetPolicy(), req.GetBudget())
	if err != nil {
		return err
	}
	defer forPolicy.Release()
	session, err := s.existingAs(memory.Exempt(ctx), req.GetSessionId(), req.GetKnown())
	if err != nil {
		return err
	}
	policy, err := s.policy(session.policy, req.GetPolicy())
	if err != nil {
		return err
	}
	injections, err := wire.InjectionsToDomain(req.GetInjections())
	if err != nil {
		return err
	}
	digest, err := wire.RequestDigest(req)
	if err != nil {
		return err
	}
	var summarizing eventlog.Seq
	if !req.GetPreview() {
		if err := s.quotas.grow(ctx, 0); err != nil {
			return err
		}
	}
	s.meter.Assembling(ctx, req.GetSessionId())
	asked := assemble.Request{
		SessionID:      req.GetSessionId(),
		AsOf:           wire.AsOfToDomain(req.AsOfSeq),
		Budget:         s.spec(session, req.GetBudget(), injections, format.Name),
		Policy:         policy,
		Injections:     injections,
		Have:           wire.HaveToDomain(req.GetHave()),
		Preview:        req.GetPreview(),
		IdempotencyKey: req.GetIdempotencyKey(),
		Digest:         digest,
	}
	made, err := s.timed(ctx, func() (made *assemble.Context, err error) {
		made, summarizing, err = s.compaction.compactor.Assemble(ctx, asked)
		return made, err
	})
	if err != nil {
		return asOfError(err, req)
	}
	defer s.shadow(made, asked) // what was recorded is sent, or its client has gone
	return s.sendContext(made, contextParts{
		brief:       req.GetBrief(),
		form:        req.GetMessageForm(),
		summarizing: summarizing,
		header: func(h *contextdv1.ContextHeader) error {
			return stream.Send(&contextdv1.AssembleContextResponse{Part: &contextdv1.AssembleContextResponse_Header{Header: h}})
		},
		chunk: func(c *contextdv1.MessageChunk) error {
			return stream.Send(&contextdv1.AssembleContextResponse{Part: &contextdv1.AssembleContextResponse_Chunk{Chunk: c}})
		},
		trailer: func(t *contextdv1.ContextTrailer) error {
			return stream.Send(&contextdv1.AssembleContextResponse{Part: &contextdv1.AssembleContextResponse_Trailer{Trailer: t}})
		},
	})
}

// projectFactor is how many bytes of memory a projection needs for each byte of the transcript.
const projectFactor = 3

// asOfError adds the field as_of to an error about its event.
func asOfError(err error, req *contextdv1.AssembleContextRequest) error {
	var missing *eventlog.NotFoundError
	if req.AsOfSeq != nil && errors.As(err, &missing) && missing.Kind == "event" {
		return &eventlog.InvalidError{Field: "as_of_seq", Reason: fmt.Sprintf("%d is after the log's head; %s", req.GetAsOfSeq(), missing.There)}
	}
	return err
}

// ProjectTranscript sends the context of events that are in no log.
func (s *Server) ProjectTranscript(req *contextdv1.ProjectTranscriptRequest, stream grpc.ServerStreamingServer[contextdv1.ProjectTranscriptResponse]) error {
	ctx := stream.Context()
	if err := s.refuseDraining(); err != nil {
		return err
	}
	format, err := wire.FormatToDomain(req.GetFormat())
	if err != nil {
		return err
	}
	forPolicy, err := s.takePolicy(ctx, "", req.GetPolicy(), req.GetBudget())
	if err != nil {
		return err
	}
	defer forPolicy.Release()
	policy, err := s.policy(nil, req.GetPolicy())
	if err != nil {
		return err
	}
	injections, err := wire.InjectionsToDomain(req.GetInjections())
	if err != nil {
		return err
	}
	events, err := wire.EventsToDomain(req.GetEvents())
	if err != nil {
		return err
	}
	for i := range events {
		// Nothing is stored, so the index can be the id. The result then depends only on the request.
		if events[i].ID == "" {
			events[i].ID = fmt.Sprintf("#%d", i+1)
		}
	}
	held, err := s.work.Take(ctx, projectFactor*uint64(proto.Size(req)))
	if err != nil {
		return err
	}
	defer held.Release()
	done, err := s.turns.Take(ctx)
	if err != nil {
		return err
	}
	defer done()
	made, err := s.timed(ctx, func() (*assemble.Context, error) {
		return s.engine.Project(ctx, events, assemble.Request{
			Budget:     s.spec(settings{}, req.GetBudget(), injections, format.Name),
			Policy:     policy,
			Injections: injections,
			Preview:    true,
		})
	})
	done()
	if err != nil {
		return err
	}
	return s.sendContext(made, contextParts{
		form: req.GetMessageForm(),
		header: func(h *contextdv1.ContextHeader) error {
			return stream.Send(&contextdv1.ProjectTranscriptResponse{Part: &contextdv1.ProjectTranscriptResponse_Header{Header: h}})
		},
		chunk: func(c *contextdv1.MessageChunk) error {
			return stream.Send(&contextdv1.ProjectTranscriptResponse{Part: &contextdv1.ProjectTranscriptResponse_Chunk{Chunk: c}})
		},
		trailer: func(t *contextdv1.ContextTrailer) error {
			return stream.Send(&contextdv1.ProjectTranscriptResponse{Part: &contextdv1.ProjectTranscriptResponse_Trailer{Trailer: t}})
		},
	})
}

// timed reports an assembly's duration to the meter. Contexts do not depend on the time that it reads.
func (s *Server) timed(ctx context.Context, f func() (*assemble.Context, error)) (*assemble.Context, error) {
	start := s.clock()
	made, err := f()
	s.meter.Assembled(ctx, s.clock().Sub(start), made, err)
	return made, err
}

// contextParts wraps the parts of a context in an RPC's response and sends them.
type contextParts struct {
	brief bool
	form  contextdv1.MessageForm
	// summarizing is the last event of the span that is being summarised; 0 if none is.
	summarizing eventlog.Seq
	header      func(*contextdv1.ContextHeader) error
	chunk       func(*contextdv1.MessageChunk) error
	trailer     func(*contextdv1.ContextTrailer) error
}

// sendContext sends header, chunks and trailer. Sending blocks while the client does not read, and
// fails if it has disconnected.
func (s *Server) sendContext(c *assemble.Context, parts contextParts) error {
	header := wire.HeaderToProto(c)
	header.GetBudget().UnknownModel = s.unknownModel(c.Projection.Budget.Model)
	header.SummarizingThroughSeq = uint64(parts.summarizing)
	if parts.brief {
		wire.Brief(header)
	}
	if err := parts.header(header); err != nil {
		return err
	}
	if err := sendMessages(c.Skipped, c.Messages, parts.form, parts.chunk); err != nil {
		return err
	}
	return parts.trailer(wire.TrailerToProto(c))
}

// sendMessages sends messages of a context in chunks. first is the index of the first message in the
// whole context.
func sendMessages(first int, messages []assemble.Message, form contextdv1.MessageForm, send func(*contextdv1.MessageChunk) error) error {
	chunk, size := &contextdv1.MessageChunk{}, 0
	for i, m := range messages {
		converted := wire.RenderedToProto(first+i, m, form)
		n := framed(proto.Size(converted))
		if size > 0 && size+n > chunkBytes {
			if err := send(chunk); err != nil {
				return err
			}
			chunk, size = &contextdv1.MessageChunk{}, 0
		}
		chunk.Messages = append(chunk.Messages, converted)
		size += n
	}
	if size == 0 {
		return nil
	}
	return send(chunk)
}
