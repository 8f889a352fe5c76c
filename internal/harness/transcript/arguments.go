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
	var out bytes.Buffer
	out.Grow(len(value))
	if err := json.Compact(&out, value); err != nil {
		return string(value)
	}
	return out.String()
}

// Arguments returns the arguments that a harness holds as a string. If it is JSON
// it stays as the model wrote it; an empty one is an empty object. Anything else
// is wrapped as {"raw_arguments": "…"}, and ok is false.
func Arguments(text string) (arguments string, ok bool) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return "{}", true
	case json.Valid([]byte(text)):
		return text, true
	}
	return Wrap("raw_arguments", text), false
}

// Wrap returns a JSON object with one string member.
func Wrap(key, value string) string {
	return "{" + Quote(key) + ":" + Quote(value) + "}"
}

// Quote returns the JSON string for s, with only the escapes that JSON needs.
func Quote(s string) string {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(Clean(s)); err != nil {
		return `""`
	}
	return strings.TrimSuffix(out.String(), "\n")
}
