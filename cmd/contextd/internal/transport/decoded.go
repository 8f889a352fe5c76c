package transport

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// The memory that decoded values take beyond their bytes, on average: a message with the pointer to it, and an
// element of a list.
const (
	messageMemory = 128
	elementMemory = 24
)

// decodedMemory estimates how much memory a decoded message takes beyond its bytes. It may stop once that exceeds
// most. An empty message takes two bytes of a request, so this may be many times the request's size. A malformed
// message is counted up to its first fault.
func decodedMemory(b []byte, md protoreflect.MessageDescriptor, most uint64) uint64 {
	d := decoding{most: most}
	d.message(b, md, protowire.DefaultRecursionLimit)
	return d.memory
}

type decoding struct{ memory, most uint64 }

func (d *decoding) message(b []byte, md protoreflect.MessageDescriptor, depth int) {
	fields := md.Fields()
	for len(b) > 0 && depth > 0 && d.memory <= d.most {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return
		}
		b = b[n:]
		if n = protowire.ConsumeFieldValue(num, typ, b); n < 0 {
			return
		}
		if fd := fields.ByNumber(num); fd != nil {
			d.value(b[:n], typ, fd, depth)
		}
		b = b[n:]
	}
}

func (d *decoding) value(b []byte, typ protowire.Type, fd protoreflect.FieldDescriptor, depth int) {
	switch {
	case fd.Message() != nil && typ == protowire.BytesType:
		d.memory += messageMemory
		content, _ := protowire.ConsumeBytes(b)
		d.message(content, fd.Message(), depth-1)
	case fd.IsList() && fd.IsPacked() && typ == protowire.BytesType:
		d.memory += uint64(len(b)) * 8 // a number has at least a byte
	case fd.IsList():
		d.memory += elementMemory
	}
}
