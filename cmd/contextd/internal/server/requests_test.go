package server_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func appending(req *contextdv1.AppendEventsRequest) func(context.Context, *api) error {
	return func(ctx context.Context, a *api) error {
		if req.GetSessionId() == "" {
			req.SessionId = "s"
		}
		_, err := a.AppendEvents(ctx, req)
		return err
	}
}

func event(e *contextdv1.Event) func(context.Context, *api) error {
	return appending(&contextdv1.AppendEventsRequest{Events: []*contextdv1.Event{e}})
}

// raw appends events in which PLACEHOLDER is replaced by text that is not UTF-8, which the
// generated client refuses to send.
func raw(events ...*contextdv1.Event) func(context.Context, *api) error {
	return func(ctx context.Context, a *api) error {
		b, err := proto.Marshal(&contextdv1.AppendEventsRequest{SessionId: "s", Events: events})
		if err != nil {
			return err
		}
		return a.invokeRaw(ctx, bytes.ReplaceAll(b, []byte("PLACEHOLDER"), []byte("\xff\xfeACEHOLDER")))
	}
}

// rawCodec sends bytes as they are.
type rawCodec struct{}

func (rawCodec) Name() string                  { return "proto" }
func (rawCodec) Marshal(v any) ([]byte, error) { return v.([]byte), nil }
func (rawCodec) Unmarshal([]byte, any) error   { return nil }

func (a *api) invokeRaw(ctx context.Context, request []byte) error {
	return a.conn.Invoke(ctx, contextdv1.ContextService_AppendEvents_FullMethodName, request, &struct{}{}, grpc.ForceCodec(rawCodec{}))
}

func assembling(change func(*contextdv1.AssembleContextRequest)) func(context.Context, *api) error {
	return func(ctx context.Context, a *api) error {
		req := &contextdv1.AssembleContextRequest{SessionId: "s"}
		change(req)
		stream, err := a.AssembleContext(ctx, req)
		if err != nil {
			return err
		}
		_, err = stream.Recv()
		return err
	}
}

func withBudget(b *contextdv1.Budget) func(context.Context, *api) error {
	return assembling(func(r *contextdv1.AssembleContextRequest) { r.Budget = b })
}

func withPolicy(p *contextdv1.Policy) func(context.Context, *api) error {
	return assembling(func(r *contextdv1.AssembleContextRequest) { r.Policy = p })
}

func reading(req *contextdv1.ReadEventsRequest) func(context.Context, *api) error {
	return func(ctx context.Context, a *api) error {
		stream, err := a.ReadEvents(ctx, req)
		if err != nil {
			return err
		}
		_, err = stream.Recv()
		return err
	}
}

func creating(req *contextdv1.CreateSessionRequest) func(context.Context, *api) error {
	return func(ctx context.Context, a *api) error {
		_, err := a.CreateSession(ctx, req)
		return err
	}
}

func forking(parent, child string, at uint64) func(context.Context, *api) error {
	return func(ctx context.Context, a *api) error {
		_, err := a.ForkSession(ctx, &contextdv1.ForkSessionRequest{SessionId: parent, NewSessionId: child, AtSeq: at})
		return err
	}
}

func resolving(pointer string) func(context.Context, *api) error {
	return func(ctx context.Context, a *api) error {
		_, err := a.ResolvePointer(ctx, &contextdv1.ResolvePointerRequest{SessionId: "s", Pointer: pointer})
		return err
	}
}

func counting(req *contextdv1.CountTokensRequest) func(context.Context, *api) error {
	return func(ctx context.Context, a *api) error {
		_, err := a.CountTokens(ctx, req)
		return err
	}
}

func projecting(req *contextdv1.ProjectTranscriptRequest) func(context.Context, *api) error {
	return func(ctx context.Context, a *api) error {
		stream, err := a.ProjectTranscript(ctx, req)
		if err != nil {
			return err
		}
		_, err = stream.Recv()
		return err
	}
}

// importing sends no header if harness is empty.
func importing(harness, data string) func(context.Context, *api) error {
	return func(ctx context.Context, a *api) error {
		stream, err := a.transcripts.ImportTranscript(ctx)
		if err != nil {
			return err
		}
		parts := []*contextdv1.ImportTranscriptRequest{{Part: &contextdv1.ImportTranscriptRequest_Data{Data: []byte(data)}}}
		if harness != "" {
			header := &contextdv1.ImportHeader{SessionId: "s", Harness: harness}
			parts = slices.Insert(parts, 0, &contextdv1.ImportTranscriptRequest{Part: &contextdv1.ImportTranscriptRequest_Header{Header: header}})
		}
		for _, part := range parts {
			if err := stream.Send(part); err != nil && !errors.Is(err, io.EOF) {
				return err
			}
		}
		_, err = stream.CloseAndRecv()
		return err
	}
}
