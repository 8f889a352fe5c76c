package eventcodec

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// The functions below write fields of protobuf messages as proto3 does: they omit zero and empty values. Strings and
// bytes have the same encoding.

// AppendInt writes a number.
func AppendInt(b []byte, field protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return appendPresent(b, field, v)
}

// appendPresent writes a field with explicit presence, even if it is zero.
func appendPresent(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

// AppendBool writes a boolean.
func AppendBool(b []byte, field protowire.Number, v bool) []byte {
	if !v {
		return b
	}
	return appendPresent(b, field, 1)
}

// AppendString writes a string.
func AppendString(b []byte, field protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return AppendElement(b, field, s)
}

// AppendElement writes one element of a repeated field, even if it is empty.
func AppendElement(b []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

// AppendBytes writes bytes.
func AppendBytes(b []byte, field protowire.Number, v []byte) []byte {
	if len(v) == 0 {
		return b
	}
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
}

// AppendMessage writes a message whose fields body writes.
func AppendMessage(b []byte, field protowire.Number, body func([]byte) []byte) []byte {
	b = append(protowire.AppendTag(b, field, protowire.BytesType), 0)
	start := len(b)
	b = body(b)
	size := len(b) - start
	if more := protowire.SizeVarint(uint64(size)) - 1; more > 0 {
		// The length takes more than the one reserved byte.
		b = slices.Grow(b, more)[:len(b)+more]
		copy(b[start+more:], b[start:start+size])
	}
	protowire.AppendVarint(b[:start-1], uint64(size))
	return b
}
