package assemble_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/render"
)

// Minimum sizes that no cap can go below, in tokens: a digest has lines that are always there, and a part
// of the system prompt always stays.
const (
	leastSummary = 250
	leastSystem  = 100
	// stubbed is what a result without its body takes at the most.
	stubbed = 90
)

// A tier stays under its cap even if the whole context would fit, as far as docs/policies.md promises:
// always for the summary and the system prompt; for the dialogue except what no cut drops; for results as
// far as they have a body to evict.
func TestTiersStayUnderTheirCaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store := memlog.New()
		defer store.Close()
		w := newWorld(t, store, &scripted{answer: writes})
		defer w.close()
		tier := rapid.SampledFrom(budget.Tiers()).Draw(t, "tier")
		req := busy()
		req.Budget.TierCaps = map[budget.Tier]float64{tier: rapid.Float64Range(0.05, 0.9).Draw(t, "cap")}
		system := strings.Repeat("You are a careful engineer.\n", rapid.IntRange(1, 200).Draw(t, "system"))
		push(t, store, "s", text("system", eventlog.RoleSystem, system), text("user", eventlog.RoleUser, "Find the handler that leaks."))
		made := 0
		for i := range rapid.IntRange(1, 40).Draw(t, "turns") {
			events, calls := busyTurn(i + 1)
			push(t, store, "s", events...)
			made += calls
			got := w.assemble(req)
			audit(t, got, made)
			w.between()
			used, limit := got.Budget.Tiers[tier], got.Projection.Budget.Caps[tier]
			if used <= limit {
				continue
			}
			switch tier {
			case budget.TierSystem:
				limit = max(limit, leastSystem)
			case budget.TierSummary:
				limit = max(limit, leastSummary)
			default:
				// A tenth of what should be freed is too little to rewrite the prefix for.
				asked := used - limit*35/100
				limit = used
				if reducible(got, tier) > asked/10 {
					limit = 0
				}
			}
			if used > limit {
				t.Fatalf("turn %d: %s takes %d tokens of %d, and %d may leave it:\n%s", i, tier, used, got.Projection.Budget.Caps[tier], reducible(got, tier), lines(got.Messages))
			}
		}
	})
}

// reducible is how much of a tier could still be reduced: full results before the newest turns that may be
// evicted, and what the agent said before those turns.
func reducible(c *assemble.Context, tier budget.Tier) (tokens uint64) {
	const spared = 2 // turns
	newest := 0
	for i := len(c.Messages) - 1; i >= 0; i-- {
		switch m := c.Messages[i]; {
		case m.Role == eventlog.RoleAssistant:
			if newest++; newest > spared && tier == budget.TierDialogue {
				tokens += m.Tokens
			}
		case m.Role == eventlog.RoleTool && newest >= spared && tier == budget.TierToolResults && m.Origin == render.Verbatim:
			r, ok := m.Blocks[0].(eventlog.ToolResult)
			if ok && !r.IsError && m.Tokens > stubbed {
				tokens += m.Tokens - stubbed
			}
		}
	}
	return tokens
}
