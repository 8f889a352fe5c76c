package render

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// deepest is how deeply JSON may be nested that is carried as JSON. Whoever reads a
// message has to read what stands around it too, and encoding/json, for one, gives up
// at ten thousand.
const deepest = 9000

// appendArguments appends a call's arguments where a format takes a JSON object alone,
// and reports whether they had to be wrapped: other JSON as {"_arguments":…}, and what
// is no JSON, as when a model broke off, as the text in {"_arguments_text":"…"}. No
// arguments are those of an empty object.
func appendArguments(dst []byte, arguments string) (out []byte, wrapped bool) {
	switch {
	case hollow(arguments):
		return append(dst, '{', '}'), false
	case !carriedJSON(arguments):
		dst = append(dst, `{"_arguments_text":`...)
		return append(appendString(dst, arguments), '}'), true
	case !isObject(arguments):
		dst = append(dst, `{"_arguments":`...)
		return append(appendRaw(dst, arguments), '}'), true
	default:
		return appendRaw(dst, arguments), false
	}
}

// carriedJSON reports whether raw may stand in a message as JSON.
func carriedJSON(raw string) bool {
	return utf8.ValidString(raw) && json.Valid([]byte(raw)) && depth(raw) <= deepest
}

// isObject reports whether valid JSON is an object.
func isObject(raw string) bool { return strings.HasPrefix(strings.TrimLeft(raw, " \t\r\n"), "{") }

// depth is how deeply valid JSON is nested.
func depth(raw string) int {
	now, most := 0, 0
	inString := false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			now++
			most = max(most, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return most
}
