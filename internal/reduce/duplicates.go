package reduce

import (
	"fmt"
	"slices"

	eventlog "github.com/contextd/contextd/internal/log"
)

// duplicateMinTokens is the size below which a pointer is hardly shorter than the result.
const duplicateMinTokens = 40

// duplicates stubs a result if a later identical call, before the last batch, returned the same body: the older copy
// adds nothing.
type duplicates struct {
	enabled bool
	texts   writer
	results *results
}

// results numbers the results of calls. Results of identical calls with identical bodies have the same
// number.
type results struct {
	number map[result]int
	again  []bool // by number: whether several results have it
}

type result struct{ tool, arguments, body string }

// add returns the number of a call's result. It is 0 if a pointer would hardly be shorter, and if the result is not
// text alone: its body does not show which images it has.
func (r *results) add(call *Call, m *Message) int {
	if m.Tokens < duplicateMinTokens || !textAlone(m) {
		return 0
	}
	k := result{call.Name, call.Arguments, call.Body}
	n, again := r.number[k]
	if !again {
		r.again = append(r.again, false)
		n = len(r.again)
		r.number[k] = n
	}
	r.again[n-1] = again
	return n
}

// repeated reports whether several results have a number.
func (r *results) repeated(number int) bool { return number > 0 && r.again[number-1] }

func (duplicates) Name() string { return "duplicates" }

func (d duplicates) Reduce(v View, s State) (View, Step) {
	if !d.enabled || s.EvictedAsOf == 0 {
		return v, Step{Note: "nothing was due"}
	}
	e := v.Editor()
	newest := map[int]*Call{}
	type copied struct{ call, later *Call }
	var old []copied
	for i := v.Len() - 1; i >= 0 && v.Ended() == nil; i-- {
		g := v.Group(i)
		if g.First > s.EvictedAsOf {
			continue
		}
		old = old[:0]
		for c := len(g.Calls) - 1; c >= 0; c-- {
			call := &g.Calls[c]
			if call.Seq > s.EvictedAsOf || !d.results.repeated(call.returned) {
				continue
			}
			later, again := newest[call.returned]
			if !again {
				newest[call.returned] = call
				continue
			}
			if v.protection.outlasts(g) {
				continue // the later copy may be dropped before this one
			}
			old = append(old, copied{call, later})
		}
		for _, o := range slices.Backward(old) { // an editor is fastest when it gets a group's results in order
			e.replace(i, o.call, Stubbed, d.texts.duplicate(o.call, o.later), d.Name(), "the same call returned the same later")
		}
	}
	return e.View(), Step{
		Touched: e.Touched(),
		Note:    fmt.Sprintf("stubbed %d results that a later call returned again, as of event %d", e.Touched(), s.EvictedAsOf),
	}
}

// textAlone reports whether a result is text and nothing else.
func textAlone(m *Message) bool {
	content := m.Blocks[0].Block.(eventlog.ToolResult).Content
	return !slices.ContainsFunc(content, func(b eventlog.Block) bool {
		_, ok := b.(eventlog.Text)
		return !ok
	})
}
