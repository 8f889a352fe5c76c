package transcript

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// appendCompact appends what Compact returns; the value must not be empty.
func appendCompact(dst, value []byte) []byte {
	for i := 0; i < len(value); {
		switch value[i] {
		case ' ', '\n', '\t', '\r':
			i++
		case '"':
			end := i + stringEnd(value[i:])
			dst = append(dst, value[i:end]...)
			i = end
		default:
			dst = append(dst, value[i])
			i++
		}
	}
	return dst
}

// compactLen is the length of what appendCompact appends.
func compactLen(value []byte) int {
	n := 0
	for i := 0; i < len(value); {
		switch value[i] {
		case ' ', '\n', '\t', '\r':
			i++
		case '"':
			length := stringEnd(value[i:])
			i, n = i+length, n+length
		default:
			i, n = i+1, n+1
		}
	}
	return n
}

// isCompacted reports whether compact is what Compact returns for the value.
func isCompacted(value []byte, compact string) bool {
	for i := 0; i < len(value); {
		size := 1
		switch value[i] {
		case ' ', '\n', '\t', '\r':
			i++
			continue
		case '"':
			size = stringEnd(value[i:])
		}
		if len(compact) < size || string(value[i:i+size]) != compact[:size] {
			return false
		}
		i, compact = i+size, compact[size:]
	}
	return compact == ""
}

// isText reports whether the JSON string says the text, which is compared piece by
// piece between escapes.
func isText(value []byte, text string) bool {
	inner := value[1 : len(value)-1]
	for {
		at := bytes.IndexByte(inner, '\\')
		if at < 0 {
			return string(inner) == text && utf8.ValidString(text)
		}
		if len(text) < at || string(inner[:at]) != text[:at] {
			return false
		}
		inner, text = inner[at:], text[at:]
		size, r := 2, escaped(inner)
		if r < 0 {
			size = escapeEnd(inner)
			var room [2 + 12 + utf8.UTFMax]byte
			quoted := append(append(append(room[:0], '"'), inner[:size]...), '"')
			var meant [8]byte
			unquoted, err := jsontext.AppendUnquote(meant[:0], quoted)
			if err != nil || len(text) < len(unquoted) || text[:len(unquoted)] != string(unquoted) {
				return false
			}
			inner, text = inner[size:], text[len(unquoted):]
			continue
		}
		if text == "" || text[0] != byte(r) {
			return false
		}
		inner, text = inner[size:], text[1:]
	}
}

// escaped is the character that an escape of two stands for; -1 for one with \u.
func escaped(b []byte) rune {
	if len(b) < 2 {
		return -1
	}
	switch b[1] {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case '"', '\\', '/':
		return rune(b[1])
	}
	return -1
}

// escapeEnd is the length of an escape with \u, of both where two stand together.
func escapeEnd(b []byte) int {
	if _, half := escapedSurrogate(b); half {
		return min(12, len(b))
	}
	return min(6, len(b))
}

func positionName(i int) []byte { return strconv.AppendInt(nil, int64(i), 10) }
