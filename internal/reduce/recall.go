package reduce

import (
	"fmt"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Recall is the tool by which a model gets back what a pointer replaces; empty where it
// has none.
type Recall string

// RecallUnknown is that of records which do not say: their texts name ResolvePointer. No tool
// has this name.
const RecallUnknown Recall = " "

// Pointer says in a text where a block is: how to call the tool for it, or its pointer.
func (r Recall) Pointer(seq eventlog.Seq, block int) string {
	switch p := Pointer(seq, block); r {
	case "":
		return p
	case RecallUnknown:
		return "ResolvePointer " + p
	default:
		return r.call(p)
	}
}

// Result says in the place of a call's result how to see it again.
func (r Recall) Result(call *Call) string {
	at := r.Pointer(call.Seq, call.Block)
	if r == "" {
		return "read again if needed: " + at
	}
	return at
}

// notice says at the head of a record how to see what it is about again.
func (r Recall) notice() string {
	switch r {
	case "":
		return "What is not shown must be read again with the tool that gave it."
	case RecallUnknown:
		return "ResolvePointer returns the body behind a ctx: pointer."
	default:
		return r.call("ctx:...") + " returns the body behind a pointer."
	}
}

func (r Recall) call(pointer string) string {
	return fmt.Sprintf("%s(pointer: %q)", string(r), pointer)
}
