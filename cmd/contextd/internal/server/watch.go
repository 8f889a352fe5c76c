package server

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/contextd/contextd/internal/lifecycle"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// WatchLifecycle sends the events after the request's cursors, and those that happen from the moment at
// which the response headers are sent.
func (c *compactions) WatchLifecycle(req *contextdv1.WatchLifecycleRequest, stream grpc.ServerStreamingServer[contextdv1.WatchLifecycleResponse]) error {
	if err := c.server.refuseDraining(); err != nil {
		return err
	}
	ctx, stop := c.server.untilDrained(stream.Context())
	defer stop()
	var after []lifecycle.Cursor
	for _, m := range req.GetAfter() {
		c := lifecycle.Cursor{SessionID: m.GetSessionId(), Number: m.GetNumber(), Incarnation: m.GetIncarnation()}
		if m.GetTime() != nil {
			c.Time = m.GetTime().AsTime()
		}
		after = append(after, c)
	}
	w, err := c.events.Watch(ctx, req.GetSessionIds(), after)
	if err != nil {
		return err
	}
	defer w.Close()
	if err := stream.SendHeader(nil); err != nil {
		return err
	}
	for e, err := range w.Events(ctx) {
		if err == nil {
			err = stream.Send(&contextdv1.WatchLifecycleResponse{Event: lifecycleEventToProto(e)})
		}
		if err != nil {
			return followEnd(ctx, err)
		}
	}
	return followEnd(ctx, context.Cause(ctx))
}

func lifecycleEventToProto(e lifecycle.Event) *contextdv1.LifecycleEvent {
	return &contextdv1.LifecycleEvent{
		SessionId:   e.SessionID,
		Type:        string(e.Type),
		Time:        optionalTime(e.Time),
		Attributes:  e.Attributes,
		Number:      e.Number,
		Incarnation: e.Incarnation,
	}
}

// optionalTime converts a time; nil for the zero time.
func optionalTime(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}
