package reduce

import (
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
)

// due reports whether a batch of evictions should be made now although nothing forces it, and why. now is the result
// without the batch. The batch would free and rewrite these numbers of tokens.
func (r *reduction) due(now Result, freed, rewritten uint64) (bool, string) {
	c := r.policy.Cache
	if freed == 0 {
		return false, ""
	}
	w := r.rewrite(now.View.Tokens(), freed, rewritten)
	switch {
	case now.State.AskedAsOf == 0 && c != Cache{}:
		return true, "nothing was sent before"
	case r.conv.lastAt.idle(c.TTL) && w.coldPays(c.Prices):
		return true, "the provider's cache has expired"
	case c.PaybackTurns > 0 && !w.pays(c.Prices, c.PaybackTurns):
		return false, ""
	case c.ClearAtLeastTokens > 0 && w.freed >= c.ClearAtLeastTokens:
		return true, "the batch frees enough"
	case c.EvictEveryTurns > 0 && r.conv.turns-now.State.EvictedTurn >= c.EvictEveryTurns:
		return true, "enough turns have passed"
	default:
		return false, ""
	}
}

// rewrittenTokens returns how many tokens the provider must read again if the view after replaces before: the size of
// the first group that differs and of all groups after it. Both views must have the same groups.
func rewrittenTokens(before, after View) uint64 {
	for i := range after.items {
		if after.items[i].tokens == before.items[i].tokens {
			continue
		}
		var sum uint64
		for _, it := range after.items[i:] {
			sum += it.tokens
		}
		return sum
	}
	return 0
}

// digestPart says that a digest takes about a third of what it replaces, unless it is at its largest.
const digestPart = 3

// cutPays reports whether a cut down to goal should be made now although nothing forces it: the view is larger than
// paysFrom, and what is dropped pays for the digest and the tail, which the provider must read again. The size of the
// digest is estimated, because to write one every turn costs too much.
func (r *reduction) cutPays(now Result, goal uint64) bool {
	c, v := r.policy.Collapse, now.View
	used := v.Tokens()
	if now.State.AskedAsOf >= r.conv.head || used > r.budget.Target || used <= max(r.paysFrom(), goal) {
		return false
	}
	d := r.demand(used - goal)
	prose := r.conv.gauge.Text(r.window.summary(v, d).quote())
	gross := r.window.frees(v, d, r.window.cut(v, d, prose))
	freed := gross - min(r.window.room(v, r.budget, prose), gross/digestPart)
	var front uint64
	for i := range v.anchorEnd(r.conv.head) {
		if !v.items[i].group.collapses(r.conv.head) {
			front += v.items[i].tokens
		}
	}
	w := r.rewrite(used, freed, used-min(front+freed, used))
	return w.pays(r.policy.Cache.Prices, c.CutPaybackTurns) && !r.reachesBack(now.State.CollapsedThrough, goal)
}

// paysFrom returns the size above which a cut that nothing forces is considered. It is the target or more if none is
// considered.
func (r *reduction) paysFrom() uint64 {
	c := r.policy.Collapse
	if r.policy.Cache == (Cache{}) || c.CutFrom == 0 || c.CutPaybackTurns == 0 {
		return r.budget.Target
	}
	return max(r.budget.Share(c.CutFrom), c.CutFromTokens)
}

// eventTimes finds how long a session was idle from the times of its events alone.
type eventTimes struct{ call, newest time.Time }

func (t *eventTimes) observe(e eventlog.Event) {
	if e.Time.IsZero() {
		return
	}
	t.newest = e.Time
	if m, ok := e.Body.(*eventlog.Message); ok && m.Role == eventlog.RoleAssistant {
		t.call = e.Time
	}
}

// idle reports whether the provider's cache has expired between the last model call and the newest event.
func (t eventTimes) idle(ttl time.Duration) bool {
	return ttl > 0 && !t.call.IsZero() && t.newest.Sub(t.call) > ttl
}
