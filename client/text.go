package client

import (
	"strings"
	"unicode/utf8"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
)

// namingText converts gRPC's error for a message with a text that is not UTF-8, such as an id: the new error names
// the field, as the daemon's error would. Other errors are returned unchanged.
func namingText(err error, sent any) error {
	m, ok := sent.(proto.Message)
	if !ok || status.Code(err) != codes.Internal {
		return err
	}
	var field string
	_ = protorange.Range(m.ProtoReflect(), func(at protopath.Values) error {
		if text, ok := at.Index(-1).Value.Interface().(string); ok && !utf8.ValidString(text) {
			field = strings.TrimPrefix(at.Path[1:].String(), ".")
			return protorange.Terminate
		}
		return nil
	})
	if field == "" {
		return err
	}
	const rule = "must be UTF-8"
	refused, detailed := status.New(codes.InvalidArgument, field+": "+rule).WithDetails(
		&errdetails.ErrorInfo{Reason: "INVALID_FIELD"},
		&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: field, Description: rule}}},
	)
	if detailed != nil {
		return err
	}
	return refused.Err()
}
