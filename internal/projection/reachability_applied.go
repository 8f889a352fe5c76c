package projection

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/ledger"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/quote"
	"github.com/contextd/contextd/internal/reduce"
)

// auditPointer returns the text that replaces a redacted result: the tool, the size and hash of the text, and how to
// get it back.
func auditPointer(by reduce.Recall, call *reduce.Call, chars int) string {
	const longestTool = 40 // bytes
	sum := sha256.Sum256([]byte(call.Body))
	return fmt.Sprintf("[contextd: %s result redacted, %s: %d chars, sha256 %s; %s]",
		ledger.Cut(quote.Name(call.Name), longestTool), unreachable, chars, hex.EncodeToString(sum[:6]), by.Result(call))
}

// credit records a root that kept a result.
func (c *collection) credit(name string) {
	name = ledger.Cut(name, 120)
	if len(c.consulted) < mostConsulted && !slices.Contains(c.consulted, name) {
		c.consulted = append(c.consulted, name)
	}
}

// applied reports what was done, and what was not done and why.
func (c *collection) applied() Applied {
	out := Applied{View: c.view, State: c.before, RootsConsulted: c.consulted}
	out.State.Redacted, out.State.Restored = inOrder(c.after.Redacted), inOrder(c.after.Restored)
	out.State.BatchTurn = c.after.BatchTurn
	if c.edit.Touched() > 0 {
		out.View = c.edit.View()
	}
	said := []string{fmt.Sprintf("redacted: %d, of them new: %d", c.standing, c.fresh)}
	for _, n := range []struct {
		count int
		what  string
	}{{c.again, "shown again"}, {c.waiting, "waiting for a batch"}, {c.named, "referred to"}, {c.failed, "failed"}, {c.withheld, "waiting for a write"}} {
		if n.count > 0 {
			said = append(said, fmt.Sprintf("%s: %d", n.what, n.count))
		}
	}
	out.Reason = c.safety.reason()
	if c.opaque.count > 0 && out.Reason == "" {
		out.Reason = fmt.Sprintf("%s: the results of %d groups hold a provider's own blocks and stay as they are, the first at event %d", SafetyBlocked, c.opaque.count, c.opaque.first)
	}
	if out.Reason != "" {
		out.SafetyBlocked = true
		said = append(said, out.Reason)
	}
	if c.withheld > 0 && c.standing == 0 && out.Reason == "" {
		out.Reason = WriteBarrierMissing
	}
	out.Step = &reduce.Step{
		Reducer: ReachabilityGC, TokensBefore: c.view.Tokens(), TokensAfter: out.View.Tokens(),
		Touched: c.edit.Touched(), Note: strings.Join(append(said, c.notes...), "; "),
	}
	return out
}

func inOrder(all []eventlog.Place) []eventlog.Place {
	slices.SortFunc(all, eventlog.Place.Compare)
	return slices.Compact(all)
}
