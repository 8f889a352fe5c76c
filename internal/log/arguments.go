package log

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// WrappedArguments is the name of the member that has the text of a call's arguments, as a string, if they are not a
// JSON object and a format allows only objects there.
const WrappedArguments = "raw_arguments"

// deepest is the greatest nesting depth of text that a message has as JSON; deeper text is put in as a string.
// Readers parse the whole message, and encoding/json gives up at a depth of ten thousand.
const deepest = 9000

// IsJSON reports whether a message may have the text as JSON: it is valid and not too deeply nested.
func IsJSON(text string) bool {
	return utf8.ValidString(text) && json.Valid([]byte(text)) && depth(text) <= deepest
}

// IsJSONObject reports whether a message may have the text as a JSON object.
func IsJSONObject(text string) bool {
	return strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{") && IsJSON(text)
}

// depth returns how deeply valid JSON is nested.
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
