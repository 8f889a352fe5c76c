package client

import (
	"cmp"
	"context"
	"errors"
	"io"
	"iter"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// Events returns the events of a log as they were appended. If the connection breaks, it continues
// after the newest event that it has; the error is ErrLogLost if the log no longer has that event.
// With follow in the request it waits for more events until ctx ends. It ends after an error.
func (c *Client) Events(ctx context.Context, req *contextdv1.ReadEventsRequest) iter.Seq2[*contextdv1.Event, error] {
	return func(yield func(*contextdv1.Event, error) bool) {
		rest := proto.CloneOf(cmp.Or(req, &contextdv1.ReadEventsRequest{}))
		resuming(ctx, c.patience, func(ctx context.Context) (grpc.ServerStreamingClient[contextdv1.ReadEventsResponse], error) {
			return c.ReadEvents(ctx, rest)
		}, func(part *contextdv1.ReadEventsResponse) (more bool) {
			for _, e := range part.GetEvents() {
				if !yield(e, nil) {
					return false
				}
				rest.FromSeq = e.GetSeq() + 1
			}
			if read := markOf(part); read != nil {
				rest.Known = read
			}
			return rest.GetToSeq() == 0 || rest.FromSeq <= rest.GetToSeq()
		}, func(err error) { yield(nil, err) })
	}
}

// markOf returns the mark of what was read; nil if the response has no incarnation or no events.
func markOf(part *contextdv1.ReadEventsResponse) *contextdv1.LogMark {
	if part.GetIncarnation() == "" || len(part.GetEvents()) == 0 {
		return nil
	}
	last := part.GetEvents()[len(part.GetEvents())-1]
	return &contextdv1.LogMark{Incarnation: part.GetIncarnation(), HeadSeq: last.GetSeq(), ChainHead: part.GetChainHead()}
}

// Watch returns what happens to sessions. If the connection breaks, it continues after the newest
// event that it has of each session that the request names; events of other sessions that happened
// in the meantime are missing. It ends with ctx, or after an error.
func (c *Client) Watch(ctx context.Context, req *contextdv1.WatchLifecycleRequest) iter.Seq2[*contextdv1.LifecycleEvent, error] {
	return func(yield func(*contextdv1.LifecycleEvent, error) bool) {
		rest := proto.CloneOf(cmp.Or(req, &contextdv1.WatchLifecycleRequest{}))
		resuming(ctx, c.patience, func(ctx context.Context) (grpc.ServerStreamingClient[contextdv1.WatchLifecycleResponse], error) {
			return c.WatchLifecycle(ctx, rest)
		}, func(part *contextdv1.WatchLifecycleResponse) (more bool) {
			e := part.GetEvent()
			if !yield(e, nil) {
				return false
			}
			advance(rest, e)
			return true
		}, func(err error) { yield(nil, err) })
	}
}

// advance moves a request's cursor past an event, if the request names the event's session.
func advance(req *contextdv1.WatchLifecycleRequest, e *contextdv1.LifecycleEvent) {
	if e.GetNumber() == 0 {
		return
	}
	cursor := &contextdv1.LifecycleCursor{SessionId: e.GetSessionId(), Number: e.GetNumber(), Incarnation: e.GetIncarnation(), Time: e.GetTime()}
	for i, old := range req.GetAfter() {
		if old.GetSessionId() == e.GetSessionId() {
			req.After[i] = cursor
			return
		}
	}
	for _, id := range req.GetSessionIds() {
		if id == e.GetSessionId() {
			req.After = append(req.After, cursor)
			return
		}
	}
}

// resuming opens a stream and passes its parts to take until take returns false. If the stream breaks it is opened
// again; each part renews the patience.
func resuming[T any](ctx context.Context, patience patience, open func(context.Context) (grpc.ServerStreamingClient[T], error), take func(*T) bool, fail func(error)) {
	for {
		var progress bool
		err := patience.repeat(ctx, (*Error).mayPass, func() error {
			var err error
			progress, err = receive(ctx, open, take)
			if progress {
				return nil
			}
			return err
		})
		switch {
		case err != nil:
			fail(err)
			return
		case !progress:
			return
		}
	}
}

// receive reads a stream to its end. again is true if it broke after parts had arrived.
func receive[T any](ctx context.Context, open func(context.Context) (grpc.ServerStreamingClient[T], error), take func(*T) bool) (again bool, err error) {
	if ctx == nil {
		return false, errNoContext
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends a stream that is not read to its end
	stream, err := open(ctx)
	if err != nil {
		return false, err
	}
	for came := false; ; came = true {
		part, err := stream.Recv()
		var refused *Error
		switch {
		case errors.Is(err, io.EOF):
			return false, nil
		case err != nil:
			return came && errors.As(err, &refused) && refused.mayPass(), err
		case !take(part):
			return false, nil
		}
	}
}

// Sessions returns all sessions, page by page, beginning at the request's page_token.
func (c *Client) Sessions(ctx context.Context, req *contextdv1.ListSessionsRequest) iter.Seq2[*contextdv1.Session, error] {
	return pages(proto.CloneOf(cmp.Or(req, &contextdv1.ListSessionsRequest{})), func(req *contextdv1.ListSessionsRequest) ([]*contextdv1.Session, string, error) {
		resp, err := c.ListSessions(ctx, req)
		return resp.GetSessions(), resp.GetNextPageToken(), err
	}, func(req *contextdv1.ListSessionsRequest, token string) { req.PageToken = token })
}

// Projections returns the recorded projections of a session, oldest first.
func (c *Client) Projections(ctx context.Context, req *contextdv1.ListProjectionsRequest) iter.Seq2[*contextdv1.Projection, error] {
	return pages(proto.CloneOf(cmp.Or(req, &contextdv1.ListProjectionsRequest{})), func(req *contextdv1.ListProjectionsRequest) ([]*contextdv1.Projection, string, error) {
		resp, err := c.ListProjections(ctx, req)
		return resp.GetProjections(), resp.GetNextPageToken(), err
	}, func(req *contextdv1.ListProjectionsRequest, token string) { req.PageToken = token })
}

// ModelCalls returns the recorded model calls of a session, oldest first.
func (c *Client) ModelCalls(ctx context.Context, req *contextdv1.ListModelCallsRequest) iter.Seq2[*contextdv1.ModelCall, error] {
	return pages(proto.CloneOf(cmp.Or(req, &contextdv1.ListModelCallsRequest{})), func(req *contextdv1.ListModelCallsRequest) ([]*contextdv1.ModelCall, string, error) {
		resp, err := c.ListModelCalls(ctx, req)
		return resp.GetCalls(), resp.GetNextPageToken(), err
	}, func(req *contextdv1.ListModelCallsRequest, token string) { req.PageToken = token })
}

// pages returns the items of all pages. It ends after an error.
func pages[Req, Item any](req Req, list func(Req) ([]Item, string, error), turn func(Req, string)) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		for {
			items, next, err := list(req)
			if err != nil {
				var none Item
				yield(none, err)
				return
			}
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			if next == "" {
				return
			}
			turn(req, next)
		}
	}
}
