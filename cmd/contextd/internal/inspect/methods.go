package inspect

import (
	"context"
	"errors"
	"io"
	"net/http"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// newReader serves the read-only methods that the page may call, over Connect and gRPC-Web. It passes each
// call on to the API. With forward it passes on the caller's bearer token too.
func newReader(api grpc.ClientConnInterface, forward bool) http.Handler {
	m, mux := methods{forward, newRoom()}, http.NewServeMux()
	contexts, compaction := contextdv1.NewContextServiceClient(api), contextdv1.NewCompactionServiceClient(api)
	mux.Handle(unary(m, contextdv1.ContextService_ListSessions_FullMethodName, contexts.ListSessions))
	mux.Handle(unary(m, contextdv1.ContextService_GetSession_FullMethodName, contexts.GetSession))
	mux.Handle(stream(m, contextdv1.ContextService_ReadEvents_FullMethodName, untilNow(contexts.ReadEvents), false))
	mux.Handle(unary(m, contextdv1.ContextService_ListProjections_FullMethodName, contexts.ListProjections))
	mux.Handle(unary(m, contextdv1.ContextService_ListModelCalls_FullMethodName, contexts.ListModelCalls))
	mux.Handle(unary(m, contextdv1.ContextService_ReplayProjection_FullMethodName, contexts.ReplayProjection))
	mux.Handle(stream(m, contextdv1.ContextService_RenderProjection_FullMethodName, contexts.RenderProjection, false))
	mux.Handle(unary(m, contextdv1.ContextService_ResolvePointer_FullMethodName, contexts.ResolvePointer))
	mux.Handle(unary(m, contextdv1.ContextService_ExplainCall_FullMethodName, contexts.ExplainCall))
	mux.Handle(unary(m, contextdv1.CompactionService_ListSummaries_FullMethodName, compaction.ListSummaries))
	mux.Handle(stream(m, contextdv1.CompactionService_WatchLifecycle_FullMethodName, compaction.WatchLifecycle, true))
	return mux
}

// untilNow refuses to follow a log: the call would keep memory for an answer as long as no event is appended.
func untilNow(read readEvents) readEvents {
	return func(ctx context.Context, req *contextdv1.ReadEventsRequest, o ...grpc.CallOption) (grpc.ServerStreamingClient[contextdv1.ReadEventsResponse], error) {
		if req.GetFollow() {
			return nil, status.Error(codes.InvalidArgument, "follow: must not be set here; WatchLifecycle says when to read again")
		}
		return read(ctx, req, o...)
	}
}

type readEvents = func(context.Context, *contextdv1.ReadEventsRequest, ...grpc.CallOption) (grpc.ServerStreamingClient[contextdv1.ReadEventsResponse], error)

type methods struct {
	forward bool
	room    room
}

// outgoing is the context of a call to the API.
func (m methods) outgoing(ctx context.Context, header http.Header) context.Context {
	if !m.forward {
		return ctx
	}
	var tokens []string // the API refuses several
	for _, token := range header.Values("Authorization") {
		tokens = append(tokens, "authorization", token)
	}
	return metadata.AppendToOutgoingContext(ctx, tokens...)
}

func unary[Q, A any](m methods, procedure string, call func(context.Context, *Q, ...grpc.CallOption) (*A, error)) (string, http.Handler) {
	return procedure, m.room.around(connect.NewUnaryHandler(procedure, func(ctx context.Context, req *connect.Request[Q]) (*connect.Response[A], error) {
		if err := partOf(ctx).take(ctx); err != nil {
			return nil, err
		}
		answer, err := call(m.outgoing(ctx, req.Header()), req.Msg)
		if err != nil {
			return nil, refusal(err)
		}
		partOf(ctx).keep(size(answer))
		return connect.NewResponse(answer), nil
	}, connect.WithReadMaxBytes(maxRequestBytes)))
}

// stream passes on answers one by one. follows is for streams that may be idle for long; their answers are
// small and get no memory reserved.
func stream[Q, A any](m methods, procedure string, call func(context.Context, *Q, ...grpc.CallOption) (grpc.ServerStreamingClient[A], error), follows bool) (string, http.Handler) {
	return procedure, m.room.around(connect.NewServerStreamHandler(procedure, func(ctx context.Context, req *connect.Request[Q], out *connect.ServerStream[A]) error {
		answers, err := call(m.outgoing(ctx, req.Header()), req.Msg)
		if err != nil {
			return refusal(err)
		}
		for p := partOf(ctx); ; p.keep(0) {
			if !follows {
				if err := p.take(ctx); err != nil {
					return err
				}
			}
			answer, err := answers.Recv()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return refusal(err)
			}
			p.keep(size(answer))
			if err := out.Send(answer); err != nil {
				return err
			}
		}
	}, connect.WithReadMaxBytes(maxRequestBytes)))
}

func size(answer any) int { return proto.Size(answer.(proto.Message)) }

// refusal converts an error of the API, with its details, for the page.
func refusal(err error) error {
	s := status.Convert(err)
	out := connect.NewError(connect.Code(s.Code()), errors.New(s.Message()))
	for _, d := range s.Proto().GetDetails() {
		if detail, err := connect.NewErrorDetail(d); err == nil {
			out.AddDetail(detail)
		}
	}
	return out
}
