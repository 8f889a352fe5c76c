package transcript

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	eventlog "github.com/contextd/contextd/internal/log"
)

// lenient accepts two faults that harnesses write: repeated names, of which the last counts, and strings that are not
// UTF-8, in which invalid bytes are replaced.
var lenient = jsonv2.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// Decode reads a JSON value. Unlike encoding/json it makes one pass over the input, and matches names
// exactly. The error is a *ShapeError, or one for which malformed is true.
func Decode(value []byte, into any) error {
	return shaped(jsonv2.Unmarshal(value, into, lenient))
}

// Valid reports whether text is one JSON value.
func Valid(text []byte) bool { return jsontext.Value(text).IsValid(lenient) }

// malformed reports whether a decoding error means that the input is not JSON, and not that it is JSON of another
// shape.
func malformed(err error) bool {
	var syntax *jsontext.SyntacticError
	return errors.As(err, &syntax)
}

// ParseTime reads a time in RFC 3339; one without a zone is UTC. For a time that is absent or in another form
// it returns the zero time.
func ParseTime(s string) time.Time {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}

// Text decodes a JSON string; false for any other value.
func Text(value []byte) (string, bool) {
	if len(value) == 0 || value[0] != '"' {
		return "", false
	}
	if text, err := jsontext.AppendUnquote(nil, value); err == nil {
		return string(text), true
	}
	var s string
	err := Decode(value, &s)
	return s, err == nil
}

// Word is a string, or empty if the file has a value of another type in its place.
type Word string

// UnmarshalJSON never fails.
func (w *Word) UnmarshalJSON(value []byte) error {
	text, _ := Text(value)
	*w = Word(text)
	return nil
}

// Maybe is a T, or its zero value if the file has a value of another shape in its place.
type Maybe[T any] struct{ Value T }

// UnmarshalJSON never fails.
func (m *Maybe[T]) UnmarshalJSON(value []byte) error {
	var v T
	if Decode(value, &v) == nil {
		m.Value = v
	} else {
		m.Value = *new(T)
	}
	return nil
}

// Count is a number of tokens. If the file has something else in its place, the rest of the record can still be read:
// a fraction is truncated, and anything else counts as 0.
type Count uint64

// UnmarshalJSON never fails.
func (c *Count) UnmarshalJSON(value []byte) error {
	*c = 0
	if n, err := strconv.ParseUint(string(value), 10, 64); err == nil {
		*c = Count(n)
	} else if f, err := strconv.ParseFloat(string(value), 64); err == nil && f >= 0 && f < 1<<53 {
		*c = Count(f)
	}
	return nil
}

// String writes the number in decimal.
func (c Count) String() string { return strconv.FormatUint(uint64(c), 10) }

// ShapeError says that a value is JSON, but that a part of it is not of the expected kind.
type ShapeError struct {
	Pointer string // RFC 6901; empty for the value itself
	Kind    string // the kind that was found
}

func (e *ShapeError) Error() string {
	if e.Pointer == "" {
		return "unexpected " + e.Kind
	}
	return fmt.Sprintf("unexpected %s at %s", e.Kind, e.Pointer)
}

// shaped replaces the library's decoding errors: their wording varies from run to run, and warnings must be
// deterministic.
func shaped(err error) error {
	var semantic *jsonv2.SemanticError
	if !errors.As(err, &semantic) || malformed(err) {
		return err
	}
	return &ShapeError{Pointer: string(semantic.JSONPointer), Kind: kindName(semantic.JSONKind)}
}

var kindNames = map[jsontext.Kind]string{
	'n': "null", 't': "boolean", 'f': "boolean", '"': "string", '0': "number", '{': "object", '[': "list",
}

func kindName(k jsontext.Kind) string { return cmp.Or(kindNames[k], "value") }

// Arguments returns a tool call's arguments, as the model wrote them, from the string in which a harness stores them.
// isJSON says whether they are JSON. An empty string becomes an empty object.
func Arguments(text string) (arguments string, isJSON bool) {
	if text == "" {
		return "{}", true
	}
	return text, eventlog.IsJSON(text)
}

// RawArguments is Arguments for a JSON value, which is a string with the arguments or the arguments themselves.
func RawArguments(value []byte) (arguments string, isJSON bool) {
	if text, isText := Text(value); isText {
		return Arguments(text)
	}
	if string(value) == "null" {
		return "{}", true
	}
	return Compact(value), true
}

// Arguments is RawArguments with a warning if the arguments are not JSON.
func (b *Builder) Arguments(line int, call string, value []byte) string {
	arguments, isJSON := RawArguments(value)
	if !isJSON {
		b.Warn(line, "arguments of call %q are not JSON; kept as they are", call)
	}
	return arguments
}

// Wrap returns a JSON object with one string member.
func Wrap(key, value string) string {
	return string(Object(key, Clean(value)))
}

// Quote returns the JSON string for s, with only the escapes that JSON needs.
func Quote(s string) string { return string(appendText(nil, Clean(s))) }

// WrapArguments makes an object of arguments that are no object, for a harness that can store only objects. An object
// that looks like a wrapper is wrapped, too, so that UnwrapArguments always restores the original.
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
