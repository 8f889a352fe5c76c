package render

import (
	"strings"
	"unicode/utf8"
)

// anyEscape is in each JSON text that writes a letter of a name in another way.
const anyEscape = `\u`

// mayName reports whether a JSON text may have a name, given in quotes, as a member or a string, without parsing it.
func mayName(json, quoted string) bool {
	return strings.Contains(json, quoted) || strings.Contains(json, anyEscape)
}

// appendString appends s as a JSON string, escaped minimally: the quotation mark,
// the reverse solidus and control characters, with the short form where JSON has
// one. Everything else is as UTF-8; bytes that are no UTF-8 become U+FFFD.
func appendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
			dst = append(dst, s[start:i]...)
			dst = append(dst, "\uFFFD"...)
			i++
			start = i
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// appendNative appends the JSON of a provider's own block as the provider takes it.
func appendNative(dst []byte, raw string) []byte {
	whole, _ := wholePairs(raw)
	return appendRaw(dst, whole)
}

// appendRaw appends a JSON text without the whitespace between its tokens. Every
// other byte stays: numbers, escapes, duplicate members and their order.
func appendRaw(dst []byte, raw string) []byte {
	inString := false
	start := 0
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inString:
			if c == '\\' {
				i++
			} else if c == '"' {
				inString = false
			}
		case c == '"':
			inString = true
		case c == ' ' || c == '\n' || c == '\r' || c == '\t':
			dst = append(dst, raw[start:i]...)
			start = i + 1
		}
	}
	return append(dst, raw[start:]...)
}
