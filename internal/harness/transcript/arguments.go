package transcript

import (
	"encoding/json"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	eventlog "github.com/contextd/contextd/internal/log"
)

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
func RawArguments(value []byte) (arguments string, isJSON bool) {
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
	return string(Object(key, Clean(value)))
}

// Quote returns the JSON string for s, with only the escapes that JSON needs.
func Quote(s string) string { return string(appendText(nil, Clean(s))) }

// WrapArguments makes an object of arguments that are none, for a harness that has room
// for objects only. What looks wrapped already is wrapped, too, so that unwrapping it
// gives it back.
func WrapArguments(arguments string) string {
	if arguments == "" {
		return "{}"
	}
	if _, looks := unwrapped(arguments); looks || !eventlog.IsJSONObject(arguments) {
		return string(Object(eventlog.WrappedArguments, arguments))
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
	var members map[string]jsontext.Value
	if !strings.Contains(arguments, eventlog.WrappedArguments) || json.Unmarshal([]byte(arguments), &members) != nil || len(members) != 1 {
		return "", false
	}
	var text *string
	if json.Unmarshal(members[eventlog.WrappedArguments], &text) != nil || text == nil {
		return "", false
	}
	return *text, true
}
