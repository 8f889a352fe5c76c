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

// codec is gRPC's own, except for a request that cannot be decoded. gRPC would answer INTERNAL before any interceptor
// sees the call; this codec returns an empty message with a note of the fault, which checkDecoded finds.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2("proto")} }

// noteField is the number of the unknown field that holds the note. A client that sends such a field itself is
// refused.
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

// outgoing is a message on its way to a client.
type outgoing struct {
	message proto.Message
	// size is the size of the encoded message.
	size int
	// release, if set, is called once gRPC has released the encoded message.
	release func()
	encoded bool
}

// releaseUnsent calls release for a message that never reached gRPC.
func (o *outgoing) releaseUnsent() {
	if !o.encoded {
		o.release()
	}
}

// pooledMessage is the largest message that fits the smaller buffers of gRPC's pool; the next size is a MiB.
const pooledMessage = 32 << 10

// Marshal encodes a message that a stream sends.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	out, ok := v.(*outgoing)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	options := proto.MarshalOptions{UseCachedSize: true}
	if out.release == nil && out.size <= pooledMessage {
		pool := mem.DefaultBufferPool()
		b := pool.Get(out.size)
		encoded, err := options.MarshalAppend((*b)[:0], out.message)
		if err != nil {
			pool.Put(b)
			return nil, err
		}
		*b = encoded
		return mem.BufferSlice{mem.NewBuffer(b, pool)}, nil
	}
	b := make([]byte, 0, out.size)
	b, err := options.MarshalAppend(b, out.message)
	if err != nil {
		return nil, err
	}
	if out.encoded = true; out.release == nil {
		return mem.BufferSlice{mem.SliceBuffer(b)}, nil
	}
	return mem.BufferSlice{mem.NewBuffer(&b, onFree(out.release))}, nil
}

// onFree is a buffer pool for one buffer: a function that is called when the buffer is released.
type onFree func()

func (f onFree) Get(n int) *[]byte { b := make([]byte, n); return &b }

func (f onFree) Put(*[]byte) { f() }

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
