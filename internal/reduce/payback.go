package reduce

import (
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
)

// due reports whether a batch of evictions that nothing forces should be made now, and why. now is the result
// without the batch, which would free and rewrite the given numbers of tokens.
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

// rewrittenTokens is the size, in the view after, of the first group that differs and of all groups after
// it: the provider has to read these again. Both views must hold the same groups.
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

// digestPart says that a digest which is not at its largest takes about a third of what it replaces.
const digestPart = 3

// cutPays reports whether a cut down to goal that nothing forces should be made now: the view is larger than
// paysFrom, and what is dropped pays for the digest and the tail that the provider must read again. The size
// of the digest is estimated: writing one every turn to find out would cost too much.
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

// paysFrom is the size above which a cut that nothing forces is considered; the target or more where none is.
func (r *reduction) paysFrom() uint64 {
	c := r.policy.Collapse
	if r.policy.Cache == (Cache{}) || c.CutFrom == 0 || c.CutPaybackTurns == 0 {
		return r.budget.Target
	}
	return max(r.budget.Share(c.CutFrom), c.CutFromTokens)
}

// eventTimes derives from the log alone how long a session was idle.
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
