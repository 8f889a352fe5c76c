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

// Shorten writes a call's arguments in one short line: the members of a JSON
// object as name=value in their order, long values cut; anything else as it
// stands, cut.
func Shorten(arguments string) string {
	decoder := json.NewDecoder(strings.NewReader(arguments))
	if t, err := decoder.Token(); err != nil || t != json.Delim('{') {
		return Cut(oneLine(arguments), allBytes)
	}
	var out strings.Builder
	for decoder.More() && out.Len() < allBytes {
		name, err := decoder.Token()
		if err != nil {
			return Cut(oneLine(arguments), allBytes)
		}
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return Cut(oneLine(arguments), allBytes)
		}
		value := string(raw)
		var s string
		if json.Unmarshal(raw, &s) == nil {
			value = s
		}
		if out.Len() > 0 {
			out.WriteByte(' ')
		}
		out.WriteString(name.(string))
		out.WriteByte('=')
		out.WriteString(Cut(oneLine(value), argumentBytes))
	}
	return Cut(out.String(), allBytes)
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
