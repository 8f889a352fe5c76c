package ledger

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

const (
	// argumentBytes is what one argument may take in a line, allBytes all of them.
	argumentBytes = 96
	allBytes      = 200
)

// Shorten writes a call's arguments in one short line, as the model wrote them
// but for whitespace between tokens: the members of a JSON object in their order,
// long values cut; anything else as it stands, cut.
func Shorten(arguments string) string {
	decoder := json.NewDecoder(strings.NewReader(arguments))
	if t, err := decoder.Token(); err != nil || t != json.Delim('{') {
		return Cut(oneLine(arguments), allBytes)
	}
	var out strings.Builder
	out.WriteByte('{')
	for decoder.More() && out.Len() < allBytes {
		var name, value json.RawMessage
		if t, err := decoder.Token(); err != nil {
			return Cut(oneLine(arguments), allBytes)
		} else if name, err = json.Marshal(t); err != nil {
			return Cut(oneLine(arguments), allBytes)
		}
		if err := decoder.Decode(&value); err != nil {
			return Cut(oneLine(arguments), allBytes)
		}
		if out.Len() > 1 {
			out.WriteByte(',')
		}
		out.Write(name)
		out.WriteByte(':')
		out.WriteString(Cut(inline(string(value)), argumentBytes))
	}
	if !decoder.More() {
		out.WriteByte('}')
	}
	return Cut(out.String(), allBytes)
}

// inline takes the line breaks between tokens out of a JSON value; a string holds
// none.
func inline(value string) string {
	if strings.HasPrefix(value, `"`) {
		return value
	}
	return oneLine(value)
}

func oneLine(s string) string {
	return strings.Join(strings.Fields(s), " ")
}

// Cut shortens s to at most n bytes, between runes, and marks the cut.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n -= len("…")
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
