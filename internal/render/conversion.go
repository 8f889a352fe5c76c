package render

import (
	"fmt"

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
	// Described: a text that says what it was, with a pointer, stands in its place.
	Described ConversionKind = iota + 1
	// LeftOut: nothing stands in its place, such as another provider's reasoning or
	// empty text.
	LeftOut
	// Renamed: a call id or tool name that the provider does not take has another.
	Renamed
	// Moved: it stands in another place or under another role than in the log.
	Moved
	// Wrapped: it stands inside a value of the provider's form, such as arguments that
	// are no JSON object.
	Wrapped
)

// description is the text that stands for a block that a format does not carry. It is
// short: it stands for what may itself be a few words.
func description(what string, at Place) string {
	if at.Seq == 0 {
		return "[" + what + "]"
	}
	return fmt.Sprintf("[%s; ResolvePointer %s]", what, reduce.Pointer(at.Seq, at.Index))
}
