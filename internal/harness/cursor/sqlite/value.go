package sqlite

import (
	"encoding/binary"
	"math"
	"strconv"
	"unicode/utf16"
)

// textEncoding is how a database writes its text.
type textEncoding int

const (
	textUTF8 textEncoding = iota
	textUTF16LE
	textUTF16BE
)

func newTextEncoding(header uint32) (textEncoding, error) {
	switch header {
	case 0, 1: // 0 in a database without tables
		return textUTF8, nil
	case 2:
		return textUTF16LE, nil
	case 3:
		return textUTF16BE, nil
	}
	return 0, damaged("its text is of an encoding that there is not")
}

func (e textEncoding) utf8(raw []byte) string {
	if e == textUTF8 {
		return string(raw)
	}
	var order binary.ByteOrder = binary.LittleEndian
	if e == textUTF16BE {
		order = binary.BigEndian
	}
	units := make([]uint16, len(raw)/2)
	for i := range units {
		units[i] = order.Uint16(raw[2*i:])
	}
	return string(utf16.Decode(units))
}

// bytes is the value as text; a blob unchanged.
func (c column) bytes(e textEncoding) []byte {
	switch {
	case c.kind == 7:
		return strconv.AppendFloat(nil, math.Float64frombits(binary.BigEndian.Uint64(c.value)), 'g', -1, 64)
	case c.kind < 12:
		return strconv.AppendInt(nil, c.integer(), 10)
	case c.kind.text() && e != textUTF8:
		return []byte(e.utf8(c.value))
	}
	return append([]byte{}, c.value...)
}
