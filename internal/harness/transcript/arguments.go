package transcript

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Compact returns the JSON value without the whitespace between its tokens, and
// otherwise with the bytes it came in. The value must be valid JSON; an absent
// one is an empty object.
func Compact(value []byte) string {
	if len(value) == 0 {
		return "{}"
	}
	if bytes.IndexByte(value, ' ') < 0 && bytes.IndexByte(value, '\n') < 0 &&
		bytes.IndexByte(value, '\t') < 0 && bytes.IndexByte(value, '\r') < 0 {
		return string(value)
	}
	var out strings.Builder
	out.Grow(len(value))
	for i := 0; i < len(value); {
		switch value[i] {
		case ' ', '\n', '\t', '\r':
			i++
		case '"':
			end := i + stringEnd(value[i:])
			out.Write(value[i:end])
			i = end
		default:
			out.WriteByte(value[i])
			i++
		}
	}
	return out.String()
}

// stringEnd is the length of the JSON string that value begins with.
func stringEnd(value []byte) int {
	for i := 1; i < len(value); {
		at := bytes.IndexByte(value[i:], '"')
		if at < 0 {
			break
		}
		i += at + 1
		escapes := 0
		for value[i-2-escapes] == '\\' { // ends at the opening quote
			escapes++
		}
		if escapes%2 == 0 {
			return i
		}
	}
	return len(value)
}

// Arguments returns the arguments that a harness holds as a string. If it is JSON
// it stays as the model wrote it; an empty one is an empty object. Anything else
// is wrapped as {"raw_arguments": "…"}, and ok is false.
func Arguments(text string) (arguments string, ok bool) {
	switch trimmed := strings.TrimSpace(text); {
	case trimmed == "":
		return "{}", true
	case Valid([]byte(trimmed)):
		return trimmed, true
	}
	return Wrap("raw_arguments", text), false
}

// RawArguments returns the arguments that a harness holds as a string of JSON or
// as JSON; see Arguments.
func RawArguments(value json.RawMessage) (arguments string, ok bool) {
	if text, isText := Text(value); isText {
		return Arguments(text)
	}
	if string(value) == "null" {
		return "{}", true
	}
	return Compact(value), true
}

// Wrap returns a JSON object with one string member.
func Wrap(key, value string) string {
	return "{" + Quote(key) + ":" + Quote(value) + "}"
}

// Quote returns the JSON string for s, with only the escapes that JSON needs.
func Quote(s string) string { return quoted(Clean(s)) }

func quoted(s string) string {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return `""`
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// wrapped is the member that holds arguments which are no object, where a harness
// has room for objects only.
const wrapped = "contextd_arguments"

// WrapArguments makes an object of arguments that are none.
func WrapArguments(arguments string) string {
	if strings.HasPrefix(arguments, "{") {
		return arguments
	}
	return `{"` + wrapped + `":` + arguments + `}`
}

// UnwrapArguments undoes WrapArguments. The arguments must be compact.
func UnwrapArguments(arguments string) string {
	if rest, ok := strings.CutPrefix(arguments, `{"`+wrapped+`":`); ok {
		if inner := rest[:len(rest)-1]; Valid([]byte(inner)) {
			return inner
		}
	}
	return arguments
}
