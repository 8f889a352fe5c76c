package reduce

import (
	"fmt"
	"strconv"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Recall is the name of the tool with which a model gets back what a pointer replaces; empty if it has no such tool.
type Recall string

// RecallUnknown is the Recall of records that do not say which tool the model had. Their texts name ResolvePointer.
// No tool has this name.
const RecallUnknown Recall = " "

// Pointer returns the reference to a block in a text: a call of the tool or, without a tool, the bare pointer.
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

// Result returns the text that replaces a call's result: how to get it again.
func (r Recall) Result(call *Call) string {
	at := r.Pointer(call.Seq, call.Block)
	if r == "" {
		return "read again if needed: " + at
	}
	return at
}

// notice returns the first lines of a digest: how to get back what is not shown.
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

// Pointer returns the name of a block in a session's log: "ctx:SEQ.BLOCK". It is short because it is part of
// contexts. It means the same in every fork.
func Pointer(seq eventlog.Seq, block int) string {
	return "ctx:" + strconv.FormatUint(uint64(seq), 10) + "." + strconv.Itoa(block)
}

// ParsePointer is the inverse of Pointer. The error says what a pointer looks like.
func ParsePointer(s string) (eventlog.Seq, int, error) {
	seqText, blockText, _ := strings.Cut(strings.TrimPrefix(s, "ctx:"), ".")
	seq, _ := strconv.ParseUint(seqText, 10, 63) // of what is no number, Pointer makes another text
	block, _ := strconv.ParseUint(blockText, 10, 31)
	if seq == 0 || Pointer(eventlog.Seq(seq), int(block)) != s {
		return 0, 0, fmt.Errorf("%q is not a pointer; pointers look like ctx:12.0", s)
	}
	return eventlog.Seq(seq), int(block), nil
}

// pointer returns the pointer to the call's result; empty if there is no result.
func (c *Call) pointer() string {
	if c.Interrupted {
		return ""
	}
	return Pointer(c.Seq, c.Block)
}

// asked is what is known of the model that is asked. model is empty if its name is not known.
type asked struct {
	model           string
	recall          Recall
	returnReasoning bool
}

// asked is that of the pipeline's views. Pipelines of a session share it while nothing of it changes.
func (p *Pipeline) asked() *asked {
	now := asked{p.model, p.policy.Recall, p.policy.Thinking.Return}
	if last := p.conv.cached.asked; last == nil || *last != now {
		made := now
		p.conv.cached.asked = &made
	}
	return p.conv.cached.asked
}

// Asked names the model that is asked; "" if that is not known.
func (v View) Asked() string {
	if v.asked == nil {
		return ""
	}
	return v.asked.model
}

// Recall returns the tool with which the model can get back what the view does not show.
func (v View) Recall() Recall {
	if v.asked == nil {
		return ""
	}
	return v.asked.recall
}

// ReturnsReasoning reports whether the model that is asked wants reasoning back as text.
func (v View) ReturnsReasoning() bool { return v.asked != nil && v.asked.returnReasoning }
