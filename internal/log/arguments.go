package log

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// WrappedArguments names the one member of the object that replaces arguments that are not
// a JSON object where only an object is allowed. Its value is their text, as a string.
const WrappedArguments = "raw_arguments"

// deepest is the greatest nesting depth of text that is embedded as JSON in a message; deeper text is carried
// as a string. Readers parse the message around it too, and encoding/json gives up at a depth of ten
// thousand.
const deepest = 9000

// IsJSON reports whether text may be in a message as JSON.
func IsJSON(text string) bool {
	return utf8.ValidString(text) && json.Valid([]byte(text)) && depth(text) <= deepest
}

// IsJSONObject reports whether text may be in a message as a JSON object.
func IsJSONObject(text string) bool {
	return strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{") && IsJSON(text)
}

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
