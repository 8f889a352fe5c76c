package render

import (
	"fmt"
	"slices"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

// Conversion is something that a format could not carry as it was.
type Conversion struct {
	// Seq and Block are the place of the block in the log; 0 and 0 where there is none.
	Seq   eventlog.Seq
	Block int
	Kind  ConversionKind
	// What says in a few words what it was: "image/png, 3412 bytes".
	What string
}

// ConversionKind says what was done.
type ConversionKind uint8

// The kinds of conversion.
const (
	// Described: a text that says what it was, with a pointer, is in its place.
	Described ConversionKind = iota + 1
	// LeftOut: nothing is in its place, such as another provider's reasoning or
	// empty text; for half of a surrogate pair, U+FFFD.
	LeftOut
	// Renamed: a call id or tool name that the provider does not take has another.
	Renamed
	// Moved: it is in another place or under another role than in the log.
	Moved
	// Wrapped: it is inside a value of the provider's form, such as arguments that
	// are no JSON object.
	Wrapped
)

// nothing is the result for a message of which nothing remains: a fragment that only reports the conversions, or none.
func nothing(m Message, conversions []Conversion) []Fragment {
	if len(conversions) == 0 {
		return nil
	}
	return []Fragment{{Message: m, Conversions: conversions}}
}

// settled removes fragments that only report conversions. The next fragment reports them, or, at the end, the one
// before.
func settled(fragments []Fragment) []Fragment {
	hollow := func(f Fragment) bool { return f.JSON == nil }
	if !slices.ContainsFunc(fragments, hollow) {
		return fragments
	}
	out := make([]Fragment, 0, len(fragments))
	var told []Conversion
	for _, f := range fragments {
		if hollow(f) {
			told = append(told, f.Conversions...)
			continue
		}
		f.Conversions = slices.Concat(told, f.Conversions)
		out, told = append(out, f), nil
	}
	if n := len(out); n > 0 {
		out[n-1].Conversions = slices.Concat(out[n-1].Conversions, told)
	}
	return out
}

// besides joins what a fragment reported with what it reports after it is rebuilt.
func besides(told, now []Conversion) []Conversion {
	out := slices.Clone(told)
	there := make(map[Conversion]bool, len(out))
	for _, c := range out {
		there[c] = true
	}
	for _, c := range now {
		if !there[c] {
			there[c], out = true, append(out, c)
		}
	}
	return out
}

// description is the text that replaces a block that a format does not carry. It is
// short: it replaces what may itself be a few words.
func description(what string, at eventlog.Place, by reduce.Recall) string {
	if at.Seq == 0 {
		return "[" + what + "]"
	}
	return fmt.Sprintf("[%s; %s]", what, by.Pointer(at.Seq, at.Block))
}
