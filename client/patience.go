package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/cenkalti/backoff/v5"
	"google.golang.org/grpc"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

var errNoContext = errors.New("ctx must not be nil")

// Pauses between two tries if the daemon names none.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 2 * time.Second
)

// patientConn repeats calls that the daemon asks to repeat or that no daemon answered. Calls can be repeated
// because events have ids and reports of model calls have keys; other calls only read, or are refused the
// second time. The exception is a call that reverts the newest compaction: if only its answer was lost, a
// second call would revert the compaction before as well. So it is repeated only if the daemon asks for it.
// Streams are repeated by the code that reads them.
type patientConn struct {
	conn     grpc.ClientConnInterface
	address  string
	patience patience
}

// Invoke implements grpc.ClientConnInterface.
func (p *patientConn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	if ctx == nil {
		return errNoContext
	}
	again := (*Error).mayPass
	if undo, ok := args.(*contextdv1.UndoCompactionRequest); ok && undo.GetCompactionSeq() == 0 {
		again = func(err *Error) bool { return err.RetryAfter > 0 }
	}
	return p.patience.repeat(ctx, again, func() error {
		return p.converted(p.conn.Invoke(ctx, method, args, reply, opts...), args)
	})
}

// NewStream implements grpc.ClientConnInterface.
func (p *patientConn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	s, err := p.conn.NewStream(ctx, desc, method, opts...)
	if err != nil {
		return nil, p.converted(err, nil)
	}
	return &stream{ClientStream: s, of: p}, nil
}

// converted returns the client's error for one of gRPC. sent is the message that was sent, if any.
func (p *patientConn) converted(err error, sent any) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return AsError(namingText(err, sent), p.address)
}

// stream converts the errors of a stream.
type stream struct {
	grpc.ClientStream
	of *patientConn
}

// RecvMsg implements grpc.ClientStream.
func (s *stream) RecvMsg(m any) error { return s.of.converted(s.ClientStream.RecvMsg(m), nil) }

// SendMsg implements grpc.ClientStream.
func (s *stream) SendMsg(m any) error { return s.of.converted(s.ClientStream.SendMsg(m), m) }

// patience is for how long a call is repeated. Negative: it is not repeated.
type patience time.Duration

// patienceFromEnv reads PatienceEnv: 0 means no repetition, and an empty variable the default.
func patienceFromEnv() (time.Duration, error) {
	text := os.Getenv(PatienceEnv)
	if text == "" {
		return DefaultPatience, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		d, err = time.ParseDuration(text + "s")
	}
	switch {
	case err != nil || d < 0:
		return 0, fmt.Errorf("%s: %q is neither seconds nor a duration such as 1m30s", PatienceEnv, text)
	case d == 0:
		return -1, nil
	}
	return d, nil
}

// repeat calls until there is an answer, again returns false for the error, or the next try would come after
// the patience has ended. The error is that of the last try; if ctx ended the wait, it wraps ctx's error, too.
func (p patience) repeat(ctx context.Context, again func(*Error) bool, call func() error) error {
	var last error
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval = firstPause, longestPause
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		last = call()
		var refused *Error
		switch {
		case last == nil:
			return struct{}{}, nil
		case p < 0 || !errors.As(last, &refused) || !again(refused):
			return struct{}{}, backoff.Permanent(last)
		case refused.RetryAfter > 0:
			return struct{}{}, &backoff.RetryAfterError{Duration: refused.RetryAfter}
		}
		return struct{}{}, last
	}, backoff.WithBackOff(pauses), backoff.WithMaxElapsedTime(time.Duration(p)))
	switch {
	case err == nil || last == nil:
		return err
	case ctx != nil && ctx.Err() != nil && !errors.Is(last, ctx.Err()):
		return fmt.Errorf("%w: %w", ctx.Err(), last)
	}
	return last
}
