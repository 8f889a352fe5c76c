package reduce

import (
	"fmt"
	"strconv"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
)

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
