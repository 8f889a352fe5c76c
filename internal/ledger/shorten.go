package ledger

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/contextd/contextd/internal/quote"
)

const (
	// argumentBytes is the most bytes of one argument in a line, and allBytes of all together.
	argumentBytes = 96
	allBytes      = 200
	// The same for a line in detail.
	detailArgumentBytes = 1200
	detailBytes         = 1600
	// cutMark marks where a text was cut.
	cutMark = "…"
)

// Shorten writes a call's arguments in one short line, without whitespace between tokens. The members of a JSON
// object stay in their order, and long values are cut. Any other text is only cut.
func Shorten(arguments string) string { return shorten(arguments, argumentBytes, allBytes) }

// Detail does the same as Shorten with longer limits, for the newest calls.
func Detail(arguments string) string { return shorten(arguments, detailArgumentBytes, detailBytes) }

// shorten cuts each argument to one bytes and all of them to all.
func shorten(arguments string, one, all int) string {
	if members, ok := shortenMembers(arguments, one, all); ok {
		return Cut(quote.Escape(members), all)
	}
	return Cut(quote.Line(arguments), all)
}

// shortenMembers writes an object with its long values cut, until there is no more room. It returns false if the part
// of arguments that it read is no JSON object.
func shortenMembers(arguments string, one, all int) (string, bool) {
	decoder := json.NewDecoder(strings.NewReader(arguments))
	if t, err := decoder.Token(); err != nil || t != json.Delim('{') {
		return "", false
	}
	var out bytes.Buffer
	out.WriteByte('{')
	for decoder.More() {
		if out.Len() >= all {
			return out.String() + cutMark, true
		}
		if out.Len() > 1 {
			out.WriteByte(',')
		}
		start := decoder.InputOffset()
		if _, err := decoder.Token(); err != nil {
			return "", false
		}
		name := arguments[start:decoder.InputOffset()]
		out.WriteString(name[strings.IndexByte(name, '"'):])
		out.WriteByte(':')
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return "", false
		}
		var value bytes.Buffer
		if err := json.Compact(&value, raw); err != nil {
			return "", false
		}
		out.WriteString(Cut(value.String(), one))
	}
	if _, err := decoder.Token(); err != nil {
		return "", false
	}
	out.WriteByte('}')
	return out.String(), strings.TrimSpace(arguments[decoder.InputOffset():]) == ""
}

// Cut shortens s to at most n bytes, between runes, and marks the cut if there is room for the mark.
func Cut(s string, n int) string {
	switch {
	case len(s) <= n:
		return s
	case n < len(cutMark):
		return cutLine(s, max(n, 0))
	}
	return cutLine(s, n-len(cutMark)) + cutMark
}
