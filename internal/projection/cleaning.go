package projection

import (
	"fmt"
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/ledger"
	"github.com/contextd/contextd/internal/quote"
	"github.com/contextd/contextd/internal/reduce"
)

// defaultKeepLast is how many of the newest groups a policy does not touch by default.
const defaultKeepLast = 2

// cleaning removes failed calls from a view. Whether that frees tokens is decided on the group with its failed
// results redacted. That is smaller than anything that reduction shows instead as the log grows, so a decision to
// remove a call is never undone.
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

// mayTouch reports whether a policy may touch group i at all.
func mayTouch(v reduce.View, i int) bool {
	return !v.Spared(i) && v.Dropped(i) == nil
}

// remove drops group i if whole is set, or else redacts the failed results if part is set, as far as signatures
// allow. It does nothing if the replacement would be larger. read has what is known of the group's calls.
func (c *cleaning) remove(i int, read *groupCalls, failed []*reduce.Call, whole, part bool, reason string) {
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

// stays counts what stays of group i for a reason other than signatures: it is protected or too small.
func (c *cleaning) stays(i int) {
	if c.view.Protected(i) {
		c.protected++
	} else {
		c.small++
	}
}

// pointerText replaces a failed result that was repaired. It is shorter than the pointers of reducers.
func pointerText(by reduce.Recall, call *reduce.Call) string {
	const longestName = 40 // bytes
	return fmt.Sprintf("[contextd: failed %s, repaired later; %s]", ledger.Cut(quote.Name(call.Name), longestName), by.Pointer(call.Seq, call.Block))
}

// applied reports what was done, and what was not done and why.
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

// counted returns "N what"; empty for 0.
func counted(n int, what string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d %s", n, what)
}
