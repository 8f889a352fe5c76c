package reduce

import (
	"fmt"
	"strconv"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Recall is the name of the tool by which a model gets back what a pointer replaces; empty where it has none.
type Recall string

// RecallUnknown is the Recall of records that do not say which tool there was: their texts name
// ResolvePointer. No tool has this name.
const RecallUnknown Recall = " "

// Pointer is how a text refers to a block: as a call of the tool, or as the bare pointer.
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

// Result says, in place of a call's result, how to get it again.
func (r Recall) Result(call *Call) string {
	at := r.Pointer(call.Seq, call.Block)
	if r == "" {
		return "read again if needed: " + at
	}
	return at
}

// notice says, at the head of a digest, how to get back what is not shown.
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

// Pointer names a block of a session's log: "ctx:SEQ.BLOCK". It is short because
// it is part of the context, and means the same in every fork.
func Pointer(seq eventlog.Seq, block int) string {
	return "ctx:" + strconv.FormatUint(uint64(seq), 10) + "." + strconv.Itoa(block)
}

// ParsePointer is the inverse of Pointer. The error says what a pointer looks
// like.
func ParsePointer(s string) (eventlog.Seq, int, error) {
	rest, ok := strings.CutPrefix(s, "ctx:")
	seqText, blockText, found := strings.Cut(rest, ".")
	seq, errSeq := strconv.ParseUint(seqText, 10, 63)
	block, errBlock := strconv.ParseUint(blockText, 10, 31)
	if !ok || !found || errSeq != nil || errBlock != nil || seq == 0 || Pointer(eventlog.Seq(seq), int(block)) != s {
		return 0, 0, fmt.Errorf("%q is not a pointer; pointers look like ctx:12.0", s)
	}
	return eventlog.Seq(seq), int(block), nil
}

// pointer names the call's result; empty where there is none.
func (c *Call) pointer() string {
	if c.Interrupted {
		return ""
	}
	return Pointer(c.Seq, c.Block)
}
