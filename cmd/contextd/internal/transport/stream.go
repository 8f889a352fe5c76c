package transport

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	"github.com/contextd/contextd/internal/fair"
	"github.com/contextd/contextd/internal/memory"
)

// rawStream has methods of gRPC's own stream with which the size of a message is known before it is received. A
// test fails if a version of gRPC lacks them.
type rawStream interface {
	ReadMessageHeader(header []byte) error
	Read(n int) (mem.BufferSlice, error)
	RecvCompress() string
	WriteStatus(st *status.Status) error
}

// errNoRawStream is returned if this version of gRPC has no rawStream.
var errNoRawStream = errors.New("gRPC's stream does not report the size of messages")

// errExemptIsLarge refuses a large request of a call that is exempt from budgets.
var errExemptIsLarge = status.Error(codes.ResourceExhausted, "the request is too large")

// boundedStream enforces the bounds as it receives and sends.
type boundedStream struct {
	grpc.ServerStream
	bounds *bounds
	raw    rawStream
	conn   *conn // nil outside of a Listener
	ctx    context.Context
	client string
	method string
	began  time.Time
	// streams is set if the client may send several messages, upload if these are parts of one request, and exempt
	// for calls that no budget may delay.
	streams, upload, exempt bool
	request                 memory.Request
	// receiving and sending end the call if a message takes too long.
	receiving, sending dueTimer
	// cut is why the call was ended before its handler returned.
	cut atomic.Pointer[error]
}

func (s *boundedStream) Context() context.Context { return s.ctx }

// RecvMsg receives a message once the budget has room for it.
func (s *boundedStream) RecvMsg(m any) error {
	if s.raw == nil {
		return errNoRawStream
	}
	if !s.streams || s.upload {
		// The time for a single request begins at once, that for a part of one when the part before was processed.
		s.receiving.start(s, s.bounds.ReceiveTimeout, "receive_timeout", "the request did not arrive")
		defer s.receiving.stop()
	}
	var header [5]byte
	if err := s.raw.ReadMessageHeader(header[:]); err != nil {
		if errors.Is(err, io.EOF) && !s.streams {
			return status.Error(codes.InvalidArgument, "no request was received")
		}
		return s.ended(err)
	}
	if s.streams && !s.upload {
		s.receiving.start(s, s.bounds.ReceiveTimeout, "receive_timeout", "the request did not arrive")
		defer s.receiving.stop()
	}
	if err := s.receive(m, uint64(binary.BigEndian.Uint32(header[1:])), header[0] != 0); err != nil {
		return s.ended(err)
	}
	if s.streams {
		return nil
	}
	switch err := s.raw.ReadMessageHeader(header[:]); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return s.ended(err)
	default:
		return status.Error(codes.InvalidArgument, "more than one request was received")
	}
}

// receive reads and decodes a message of size bytes.
func (s *boundedStream) receive(m any, size uint64, compressed bool) error {
	if size > s.bounds.maxMessage {
		return &apierr.LimitError{Setting: "max_batch_bytes", Limit: s.bounds.maxContent, Actual: size, Unit: "bytes of a request"}
	}
	if s.exempt && size > largeMessage {
		return errExemptIsLarge
	}
	held := size
	if compressed {
		held = s.unpackedAtMost(size) // its size is known only once it is unpacked
	}
	grant, err := s.take(held)
	if err != nil {
		return err
	}
	data, err := s.read(int(size))
	if err != nil {
		return err
	}
	defer data.Free()
	if compressed {
		if data, err = s.unpack(data, grant); err != nil {
			return err
		}
	}
	if err := s.decode(data, m); err != nil {
		return err
	}
	if t := s.bounds.telemetry; t != nil {
		t.HandleRPC(s.ctx, &stats.InPayload{
			RecvTime: time.Now(), Payload: m, Length: data.Len(), CompressedLength: int(size), WireLength: int(size) + 5,
		})
	}
	return nil
}

// decode takes memory for many small values, and a processor turn for a large message.
func (s *boundedStream) decode(data mem.BufferSlice, m any) error {
	turn := fair.Of(s.bounds.Processor)
	defer turn.End()
	large := data.Len() > largeMessage
	if large {
		if err := turn.Begin(s.ctx); err != nil {
			return err
		}
	}
	if message, ok := m.(proto.Message); ok && data.Len() > denseMessage {
		flat := data.MaterializeToBuffer(mem.DefaultBufferPool())
		defer flat.Free()
		data = mem.BufferSlice{flat}
		more := decodedMemory(flat.ReadOnlyData(), message.ProtoReflect().Descriptor(), s.bounds.maxDecoded)
		if more > s.bounds.maxDecoded {
			return &apierr.LimitError{Setting: "max_batch_bytes", Limit: s.bounds.maxDecoded, Actual: more, Unit: "bytes of memory for the values of a request"}
		}
		if more > largeMessage {
			turn.End() // whoever holds the memory may wait for a turn
			grant, err := s.bounds.DecodedRequests.Take(s.ctx, more)
			if err != nil {
				return err
			}
			s.request.Add(grant)
		}
	}
	if large {
		if err := turn.Begin(s.ctx); err != nil {
			return err
		}
	}
	return s.bounds.codec.Unmarshal(data, m)
}

// take releases the memory of the previous request, and takes that of the next.
func (s *boundedStream) take(size uint64) (*memory.Grant, error) {
	s.request.Hold(nil)
	if s.exempt {
		return nil, nil
	}
	budget := s.bounds.SmallRequests
	if size > largeMessage {
		budget = s.bounds.LargeRequests
	}
	grant, err := budget.Take(s.ctx, size)
	if err != nil {
		return nil, err
	}
	s.request.Hold(grant)
	return grant, nil
}

// readPiece is how much of a large message is requested at once, so that gRPC buffers few bytes however large the
// message is.
const readPiece = 256 << 10

func (s *boundedStream) read(size int) (mem.BufferSlice, error) {
	if size <= readPiece {
		return s.raw.Read(size)
	}
	whole := make([]byte, 0, size)
	for len(whole) < size {
		piece, err := s.raw.Read(min(readPiece, size-len(whole)))
		if err != nil {
			return nil, err
		}
		for _, b := range piece {
			whole = append(whole, b.ReadOnlyData()...)
		}
		piece.Free()
	}
	return mem.BufferSlice{mem.SliceBuffer(whole)}, nil
}

// SendMsg sends a message once the budget has room for it and the client receives it.
func (s *boundedStream) SendMsg(m any) error {
	message, ok := m.(proto.Message)
	if !ok {
		return s.ServerStream.SendMsg(m)
	}
	out := &outgoing{message: message, size: proto.Size(message)}
	if out.size > largeMessage && !s.exempt {
		grant, err := s.bounds.Answers.Take(s.ctx, uint64(out.size))
		if err != nil {
			return err
		}
		out.release = s.releaseWhenTaken(grant)
		defer out.releaseUnsent()
	}
	s.sending.start(s, s.bounds.SendTimeout, "send_timeout", "no part of the answer was taken")
	defer s.sending.stop()
	return s.ended(s.ServerStream.SendMsg(out))
}

// releaseWhenTaken returns the function that releases a large answer's memory. gRPC keeps the answer until the client
// has received it, even after the call has ended. A client that does not receive it is disconnected.
func (s *boundedStream) releaseWhenTaken(grant *memory.Grant) func() {
	c := s.conn
	if c == nil {
		return grant.Release
	}
	c.hold(grant)
	late := time.AfterFunc(s.bounds.SendTimeout, func() { c.list.drop(c, "took no answer in time") })
	return func() {
		late.Stop()
		c.release(grant)
	}
}

// dueTimer ends a call with one reason if a message takes too long. It is started for each message.
type dueTimer struct{ late *time.Timer }

// start ends the call after timeout, unless stop is called first. A timer's arguments must be the same every time.
func (d *dueTimer) start(s *boundedStream, timeout time.Duration, setting, what string) {
	switch {
	case s.raw == nil:
	case d.late == nil:
		d.late = time.AfterFunc(timeout, func() { s.end(&apierr.SlowError{Setting: setting, After: timeout, What: what}) })
	default:
		d.late.Reset(timeout)
	}
}

func (d *dueTimer) stop() {
	if d.late != nil {
		d.late.Stop()
	}
}

// end ends the call at once, even while its handler waits.
func (s *boundedStream) end(why error) {
	s.cut.Store(&why)
	st, _ := apierr.Convert(why)
	_ = s.raw.WriteStatus(st) // an error means that the call is over already
}

// endByCause ends the call if its context ended with a cause of its own.
func (s *boundedStream) endByCause() {
	if cause := context.Cause(s.ctx); s.raw != nil && !errors.Is(cause, s.ctx.Err()) {
		s.end(cause)
	}
}

// ended returns the reason for which the call was cut off, or else err.
func (s *boundedStream) ended(err error) error {
	if cut := s.cut.Load(); err != nil && cut != nil {
		return *cut
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return status.Error(codes.InvalidArgument, "the request was cut off")
	}
	if err != nil && s.ctx.Err() != nil {
		return s.ctx.Err()
	}
	return err
}
