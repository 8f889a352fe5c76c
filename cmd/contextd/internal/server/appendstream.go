package server

import (
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// appendStream is the server's end of AppendEventStream.
type appendStream = grpc.BidiStreamingServer[contextdv1.AppendEventStreamRequest, contextdv1.AppendEventStreamResponse]

// windowBytes bounds what the appends of one stream hold while they wait.
const windowBytes = 64 << 20

// inFlight is an append on its way, or the error that ends the stream.
type inFlight struct {
	pending pendingAppend
	weight  int64
	err     error
}

// AppendEventStream appends batches as they come, many of them on their way to
// the disk at once. Answers go out in order; the first error ends the stream
// after the answers before it, and nothing behind it was appended.
func (s *Server) AppendEventStream(stream appendStream) error {
	ctx, cancel := s.untilDrained(stream.Context())
	defer cancel()
	window := make(chan inFlight, s.limits.StreamWindow)
	room := semaphore.NewWeighted(windowBytes)
	// The reader ends at the latest when this handler has returned and gRPC
	// cancels the stream's context.
	go s.admitAll(ctx, stream, window, room)
	for next := range window {
		if next.err != nil {
			return next.err
		}
		// What was admitted is acknowledged even while the server drains.
		answer, err := s.settle(stream.Context(), next.pending)
		room.Release(next.weight)
		if err != nil {
			return wire.Under("append", err)
		}
		if err := stream.Send(&contextdv1.AppendEventStreamResponse{Appended: answer}); err != nil {
			return err
		}
	}
	return nil
}

// admitAll reads until the client is done or something goes wrong, and closes
// the window.
func (s *Server) admitAll(ctx context.Context, stream appendStream, window chan<- inFlight, room *semaphore.Weighted) {
	defer close(window)
	requests := make(chan *contextdv1.AppendEventStreamRequest)
	end := make(chan error, 1)
	go receive(ctx, stream, requests, end)
	for {
		var next inFlight
		select {
		case req := <-requests:
			next = s.admitOne(ctx, req, room)
		case next.err = <-end:
			if next.err == nil {
				return
			}
		case <-ctx.Done():
			next.err = ended(ctx)
		}
		select {
		case window <- next:
		case <-stream.Context().Done():
			return
		}
		if next.err != nil {
			return
		}
	}
}

// receive passes requests on until the client is done, which it reports as nil,
// or the stream breaks.
func receive(ctx context.Context, stream appendStream, requests chan<- *contextdv1.AppendEventStreamRequest, end chan<- error) {
	for {
		req, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			end <- nil
			return
		}
		if err != nil {
			end <- err
			return
		}
		select {
		case requests <- req:
		case <-ctx.Done():
			return
		}
	}
}

// admitOne waits for room and admits an append. A panic ends this stream alone:
// the interceptors' recovery does not reach here.
func (s *Server) admitOne(ctx context.Context, req *contextdv1.AppendEventStreamRequest, room *semaphore.Weighted) (next inFlight) {
	defer func() {
		if p := recover(); p != nil {
			next.err = fmt.Errorf("panic: %v", p)
		}
	}()
	next.weight = min(int64(proto.Size(req)), windowBytes)
	if err := room.Acquire(ctx, next.weight); err != nil {
		next.err = ended(ctx)
		return next
	}
	next.pending, next.err = s.admit(ctx, req.GetAppend())
	if next.err != nil {
		next.err = wire.Under("append", next.err)
	}
	return next
}

// ended says why a context of untilDrained is over.
func ended(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), errDrained) {
		return apierr.ErrDraining
	}
	return ctx.Err()
}
