package projection

import (
	"fmt"
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/ledger"
	"github.com/contextd/contextd/internal/reduce"
)

// defaultKeepLast is how many of the newest groups stay as they are.
const defaultKeepLast = 2

// cleaning takes failed calls out of a view. Whether something goes is decided on
// the group with what failed redacted, which is smaller than what reduction writes in
// its place as the log grows. So what went stays gone.
type cleaning struct {
	name     string
	view     reduce.View
	edit     *reduce.Editor
	smallest *reduce.Editor
	safety   *safety

	dropped, redacted, small, protected int
}

func newCleaning(name string, o Options, v reduce.View) *cleaning {
	return &cleaning{name: name, view: v, edit: v.Editor(), smallest: v.Editor(), safety: newSafety(v, o)}
}

// mayTouch reports whether group i is any policy's to touch.
func mayTouch(v reduce.View, i int) bool {
	return !v.Spared(i) && v.Dropped(i) == nil
}

// take drops group i if it may go whole, and else redacts what failed if it may
// go in part. What is larger than the thing in its place stays. read is what is known of
// the group's calls.
func (c *cleaning) take(i int, read *groupCalls, failed []*reduce.Call, whole, part bool, reason string) {
	smaller := false
	for _, call := range failed {
		smaller = c.smallest.Put(i, read.pointer(c.view, i, call, c.name, reason)) || smaller
	}
	whole = whole && c.smallest.PutDropped(i, read.drop(c.view, i, c.name, reason))
	allowed := c.safety.of(i)
	if whole && !allowed.Whole {
		c.safety.block(i)
	}
	switch {
	case whole && allowed.Whole:
		if c.edit.PutDropped(i, read.drop(c.view, i, c.name, reason)) {
			c.dropped++
		}
	case !part && !whole:
		c.stays(i)
	case !part:
	case !allowed.Results:
		if smaller {
			c.safety.block(i)
		}
	default:
		for _, call := range failed {
			if c.edit.Put(i, read.pointer(c.view, i, call, c.name, reason)) {
				c.redacted++
			} else {
				c.stays(i)
			}
		}
	}
}

// stays counts what stays of group i although signatures would let it go.
func (c *cleaning) stays(i int) {
	if c.view.Protected(i) {
		c.protected++
	} else {
		c.small++
	}
}

// pointerText replaces a failed result that was repaired. It is shorter
// than what a reducer writes there.
func pointerText(by reduce.Recall, call *reduce.Call) string {
	const longestName = 40 // bytes
	return fmt.Sprintf("[contextd: failed %s, repaired later; %s]", ledger.Cut(call.Name, longestName), by.Pointer(call.Seq, call.Block))
}

// applied says what was done, and what was not and why.
func (c *cleaning) applied(before State, notes ...string) Applied {
	out := Applied{View: c.view, State: before, SafetyBlocked: c.safety.blocked > 0, Reason: c.safety.reason()}
	if c.edit.Touched() > 0 {
		out.View = c.edit.View()
	}
	said := []string{
		counted(c.dropped, "groups dropped"), counted(c.redacted, "results redacted"), counted(c.small, "too small to gain anything"), counted(c.protected, "protected"),
	}
	said = slices.DeleteFunc(append(append(said, notes...), c.safety.reason()), func(n string) bool { return n == "" })
	if len(said) == 0 {
		said = []string{"nothing to do"}
	}
	out.Step = &reduce.Step{
		Reducer: c.name, TokensBefore: c.view.Tokens(), TokensAfter: out.View.Tokens(),
		Touched: c.dropped + c.redacted, Note: strings.Join(said, "; "),
	}
	return out
}

// counted is empty for none.
func counted(n int, what string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d %s", n, what)
}
