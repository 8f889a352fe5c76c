package transcript

import (
	"bytes"
	"encoding/json"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
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

// Arguments returns the arguments that a harness holds as a string: as the model wrote
// them, whatever that is. An empty one is an empty object. isJSON says whether they are
// JSON.
func Arguments(text string) (arguments string, isJSON bool) {
	if text == "" {
		return "{}", true
	}
	return text, eventlog.IsJSON(text)
}

// RawArguments returns the arguments that a harness holds as a string of JSON or
// as JSON; see Arguments.
func RawArguments(value json.RawMessage) (arguments string, isJSON bool) {
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

// WrapArguments makes an object of arguments that are none, for a harness that has room
// for objects only. What looks wrapped already is wrapped, too, so that unwrapping it
// gives it back.
func WrapArguments(arguments string) string {
	if arguments == "" {
		return "{}"
	}
	if _, looks := unwrapped(arguments); looks || !eventlog.IsJSONObject(arguments) {
		return "{" + quoted(eventlog.WrappedArguments) + ":" + quoted(arguments) + "}"
	}
	return arguments
}

// UnwrapArguments undoes WrapArguments.
func UnwrapArguments(arguments string) string {
	if text, ok := unwrapped(arguments); ok {
		return text
	}
	return arguments
}

func unwrapped(arguments string) (string, bool) {
	var members map[string]json.RawMessage
	if !strings.Contains(arguments, eventlog.WrappedArguments) || json.Unmarshal([]byte(arguments), &members) != nil || len(members) != 1 {
		return "", false
	}
	var text *string
	if json.Unmarshal(members[eventlog.WrappedArguments], &text) != nil || text == nil {
		return "", false
	}
	return *text, true
}
