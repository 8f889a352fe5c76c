package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	"github.com/contextd/contextd/internal/memory"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// appendStream is the server's end of AppendEventStream.
type appendStream = grpc.BidiStreamingServer[contextdv1.AppendEventStreamRequest, contextdv1.AppendEventStreamResponse]

// windowBytes bounds the memory of one stream's appends that wait to be durable.
const windowBytes = 64 << 20

// inFlight is an append that was admitted and not answered, or the error that ends the stream.
type inFlight struct {
	pending pendingAppend
	weight  int64
	// request is the memory that the request has of the budget.
	request *memory.Grant
	err     error
}

// AppendEventStream appends batches as they arrive; many may wait for the disk at once. Answers are
// sent in order. The first error ends the stream after the answers before it, and no later batch is
// appended.
func (s *Server) AppendEventStream(stream appendStream) error {
	p := &appendPipeline{
		server: s,
		stream: stream,
		window: make(chan inFlight, s.limits.StreamWindow),
		room:   semaphore.NewWeighted(windowBytes),
	}
	// The reader ends at the latest when this handler has returned: gRPC then cancels the stream's
	// context, which ends Recv. Nothing else does.
	go p.read()
	for {
		select {
		case next, ok := <-p.window:
			if !ok {
				return context.Cause(stream.Context()) // nil where the client is done
			}
			if err := p.answer(next); err != nil {
				return err
			}
		case <-s.draining.Done():
			return p.drain()
		}
	}
}

// appendPipeline admits appends in one goroutine and answers them in another.
type appendPipeline struct {
	server *Server
	stream appendStream
	window chan inFlight
	room   *semaphore.Weighted
	// taken counts appends that the reader received, or is about to, and that are not answered.
	taken atomic.Int64
}

// answer waits until an append is durable, and sends the answer.
func (p *appendPipeline) answer(next inFlight) error {
	defer p.taken.Add(-1)
	if next.err != nil {
		return next.err
	}
	answer, err := p.server.settle(p.stream.Context(), next.pending)
	p.room.Release(next.weight)
	next.request.Release()
	if err != nil {
		return wire.Under("append", err)
	}
	return p.stream.Send(&contextdv1.AppendEventStreamResponse{Appended: answer})
}

// drain answers what was received before the server began to drain. The reader counts an append first and checks for
// draining then, so none is missed.
func (p *appendPipeline) drain() error {
	for p.taken.Load() > 0 {
		next, ok := <-p.window
		if !ok {
			return context.Cause(p.stream.Context())
		}
		if err := p.answer(next); err != nil {
			return err
		}
	}
	return apierr.ErrDraining
}

// read receives and admits appends until the client is done or something fails, and then closes the window.
func (p *appendPipeline) read() {
	defer close(p.window)
	for {
		req, err := p.stream.Recv()
		if errors.Is(err, io.EOF) {
			return
		}
		p.taken.Add(1)
		next := inFlight{err: err}
		if err == nil {
			next = p.admit(req)
		}
		select {
		case p.window <- next:
		case <-p.stream.Context().Done():
			next.request.Release()
			return
		}
		if next.err != nil {
			return
		}
	}
}

// admit waits for memory and admits an append. A panic ends only this stream: the interceptors' recovery does not
// cover this goroutine.
func (p *appendPipeline) admit(req *contextdv1.AppendEventStreamRequest) (next inFlight) {
	defer func() {
		if v := recover(); v != nil {
			next.err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	ctx := p.stream.Context()
	next.request = memory.TakeRequest(ctx)
	defer func() {
		if next.err != nil {
			next.request.Release()
		}
	}()
	next.weight = min(int64(proto.Size(req)), windowBytes)
	if err := p.room.Acquire(ctx, next.weight); err != nil {
		next.err = context.Cause(ctx)
		return next
	}
	if next.pending, next.err = p.server.admit(ctx, req.GetAppend()); next.err != nil {
		next.err = wire.Under("append", next.err)
	}
	return next
}
