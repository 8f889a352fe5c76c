package transport

import (
	"unicode/utf8"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that is wrapped
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	eventlog "github.com/contextd/contextd/internal/log"
)

// codec is gRPC's own, except that a request which cannot be decoded does not
// end in INTERNAL before any interceptor sees it: it becomes an empty message
// that carries a note of the fault, which checkDecoded finds.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2("proto")} }

// noteField is the number of the unknown field that holds the note. A client
// that sends it itself is refused, which is what it deserves.
const noteField = protowire.MaxValidNumber

// Unmarshal never fails for messages of protobuf.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	err := c.CodecV2.Unmarshal(data, v)
	m, ok := v.(proto.Message)
	if err == nil || !ok {
		return err
	}
	path := findInvalidText(data.Materialize(), m.ProtoReflect().Descriptor())
	proto.Reset(m)
	m.ProtoReflect().SetUnknown(protowire.AppendString(protowire.AppendTag(nil, noteField, protowire.BytesType), path))
	return nil
}

// checkDecoded returns the error of a request that could not be decoded.
func checkDecoded(m proto.Message) error {
	unknown := m.ProtoReflect().GetUnknown()
	for len(unknown) > 0 {
		num, typ, n := protowire.ConsumeTag(unknown)
		if n < 0 {
			return nil
		}
		if num == noteField && typ == protowire.BytesType {
			path, _ := protowire.ConsumeString(unknown[n:])
			if path == "" || !utf8.ValidString(path) {
				return &eventlog.InvalidError{Field: string(m.ProtoReflect().Descriptor().Name()), Reason: "is not a valid protobuf message"}
			}
			return &eventlog.InvalidError{Field: path, Reason: "must be valid UTF-8"}
		}
		size := protowire.ConsumeFieldValue(num, typ, unknown[n:])
		if size < 0 {
			return nil
		}
		unknown = unknown[n+size:]
	}
	return nil
}
