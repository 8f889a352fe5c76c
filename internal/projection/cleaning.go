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

// keepLast is how many of the newest groups the policy leaves alone.
func (o Options) keepLast(byDefault uint32) int {
	if o.KeepLast == 0 {
		return int(byDefault)
	}
	return int(o.KeepLast)
}

// cleaning takes failed calls out of a view. Whether something goes is decided on
// the group with what failed redacted, which is smaller than what reduction writes in
// its place as the log grows. So what went stays gone.
type cleaning struct {
	name             string
	ignoreSignatures bool
	view             reduce.View
	edit             *reduce.Editor
	smallest         *reduce.Editor

	dropped, redacted, small int
	sealed                   sealedGroups
}

func newCleaning(name string, o Options, v reduce.View) *cleaning {
	return &cleaning{name: name, ignoreSignatures: o.IgnoreSignatures, view: v, edit: v.Editor(), smallest: v.Editor()}
}

// may reports whether group i is any policy's to touch.
func may(v reduce.View, i int) bool {
	g := v.Group(i)
	return !g.Anchor && !g.Pinned && v.Dropped(i) == nil
}

// take lets group i leave if it may go whole, and else redacts what failed if it may
// go in part. What is larger than the thing in its place stays.
func (c *cleaning) take(i int, failed []*reduce.Call, whole, part bool, reason string) {
	smaller := c.shrink(i, failed, reason)
	whole = whole && c.smallest.DropFailed(i, c.name, reason)
	g := c.view.Group(i)
	switch {
	case g.Sealed && !(whole && c.ignoreSignatures):
		if whole || part && smaller {
			c.sealed.add(g)
		}
	case whole:
		if c.edit.DropFailed(i, c.name, reason) {
			c.dropped++
		}
	case !part:
		c.small++
	default:
		for _, call := range failed {
			if c.edit.Redact(i, call, pointerText(call), c.name, reason) {
				c.redacted++
			} else {
				c.small++
			}
		}
	}
}

// shrink brings a group down to its smallest and reports whether redacting did
// anything for that.
func (c *cleaning) shrink(i int, failed []*reduce.Call, reason string) bool {
	touched := c.smallest.Touched()
	for _, call := range failed {
		c.smallest.Redact(i, call, pointerText(call), c.name, reason)
	}
	return c.smallest.Touched() > touched
}

// pointerText stands in the place of a failed result that was repaired. It is shorter
// than what a reducer writes there.
func pointerText(call *reduce.Call) string {
	const longestName = 40 // bytes
	return fmt.Sprintf("[contextd: failed %s, repaired later; ResolvePointer %s]", ledger.Cut(call.Name, longestName), reduce.Pointer(call.Seq, call.Block))
}

// applied tells of what was done, and of what was not and why.
func (c *cleaning) applied(before State, notes ...string) Applied {
	out := Applied{View: c.view, State: before, SafetyBlocked: c.sealed.count > 0, Reason: c.sealed.reason()}
	if c.edit.Touched() > 0 {
		out.View = c.edit.View()
	}
	said := []string{
		counted(c.dropped, "groups left"), counted(c.redacted, "results redacted"), counted(c.small, "too small to gain anything"),
	}
	said = slices.DeleteFunc(append(append(said, notes...), c.sealed.reason()), func(n string) bool { return n == "" })
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
