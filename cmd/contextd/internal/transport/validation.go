package transport

import (
	"buf.build/go/protovalidate"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// validation holds requests to the rules in the API. The middleware's own
// interceptor answers with protovalidate's violations; ours passes the error to apierr, so
// that clients find every bad field in the same detail.
type validation struct{ validator protovalidate.Validator }

func (v validation) check(m any) error {
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
	return v.validator.Validate(msg)
}

func (v validation) stream(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	return handler(srv, validatedStream{ss, v})
}

type validatedStream struct {
	grpc.ServerStream
	validation validation
}

func (s validatedStream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	if of, ok := m.(interface{ GetSessionId() string }); ok {
		trace.SpanFromContext(s.Context()).SetAttributes(attribute.String("contextd.session.id", of.GetSessionId()))
	}
	return s.validation.check(m)
}
