package transport

import (
	"context"
	"sync/atomic"

	"buf.build/go/protovalidate"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/logging"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/internal/fair"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// validation checks requests by the rules in the protos. Unlike the middleware's own interceptor, which answers
// with protovalidate's violations, it passes the error to apierr, so that clients find every invalid field in the
// same detail.
type validation struct {
	validator protovalidate.Validator
	processor *fair.Turns // for large requests
}

// listedUpTo is the size of the largest request for which all violations are listed. A violation takes hundreds of
// times the memory of the invalid bytes, so only the first is reported for a larger request.
const listedUpTo = 4 << 10

func (v validation) check(ctx context.Context, m any) error {
	msg, ok := m.(proto.Message)
	if !ok {
		return nil
	}
	if err := checkDecoded(msg); err != nil {
		return err
	}
	if plainlyValid(msg) {
		return nil
	}
	size := proto.Size(msg)
	if size <= listedUpTo {
		return v.validator.Validate(msg)
	}
	if size > largeMessage {
		done, err := v.processor.Take(ctx)
		if err != nil {
			return err
		}
		defer done()
	}
	return v.validator.Validate(msg, protovalidate.WithFailFast())
}

func (v validation) stream(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	validated := &validatedStream{ServerStream: ss, validation: v}
	err := handler(srv, validated)
	if id := validated.sessionID.Load(); id != nil && len(*id) <= maxLoggedID {
		logging.AddFields(ss.Context(), logging.Fields{"session_id", *id})
	}
	return err
}

// maxLoggedID is the API's limit on a session_id. Longer ones are refused, and are not logged or traced.
const maxLoggedID = 256

type validatedStream struct {
	grpc.ServerStream
	validation validation
	// sessionID is the session of the newest message that names one.
	sessionID atomic.Pointer[string]
}

func (s *validatedStream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	if of := naming(m); of != nil {
		s.name(of.GetSessionId())
	}
	return s.validation.check(s.Context(), m)
}

// name records the session of the call, for logs and traces.
func (s *validatedStream) name(id string) {
	if last := s.sessionID.Load(); last != nil && *last == id {
		return // a stream of appends names it each time
	}
	noted := id
	s.sessionID.Store(&noted)
	if span := trace.SpanFromContext(s.Context()); span.IsRecording() && len(id) <= maxLoggedID {
		span.SetAttributes(attribute.String("contextd.session.id", id))
	}
}

type sessionNamer interface{ GetSessionId() string }

// naming returns the part of a request that names a session; nil if there is none.
func naming(m any) sessionNamer {
	switch m := m.(type) {
	case sessionNamer:
		return m
	case *contextdv1.AppendEventStreamRequest:
		if of := m.GetAppend(); of != nil {
			return of
		}
	case *contextdv1.ImportTranscriptRequest:
		if of := m.GetHeader(); of != nil {
			return of
		}
	}
	return nil
}
