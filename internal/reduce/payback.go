package reduce

import (
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
)

// What a token of the prompt costs relative to its plain price: served from the
// provider's cache, and written to it.
const (
	cachedPrice = 10  // percent
	writePrice  = 125 // percent
)

// pays reports whether freed tokens pay, at the cached price and within so many turns, for
// those that the provider must read again.
func pays(freed, rewritten uint64, turns uint32) bool {
	return freed*cachedPrice*uint64(turns) >= rewritten*(writePrice-cachedPrice)
}

// coldPays reports whether freed tokens are worth it although that the provider's cache has
// expired is only a guess: where it is right, the freed are not written to it again with the
// rest; where it is wrong, once in wrongGuess times, the rewritten are read again.
func coldPays(freed, rewritten uint64) bool {
	const wrongGuess = 10
	return freed*writePrice*(wrongGuess-1) >= rewritten*(writePrice-cachedPrice)
}

// due reports whether a batch of evictions that nothing forces should go now,
// and why. before and after are the views without and with it.
func (c Cache) due(before, after View, s State, turn uint32, cold bool) (bool, string) {
	if after.Tokens() >= before.Tokens() {
		return false, ""
	}
	freed := before.Tokens() - after.Tokens()
	switch {
	case s.AskedAsOf == 0 && c != Cache{}:
		return true, "nothing was sent before"
	case cold && coldPays(freed, rewrittenTokens(before, after)):
		return true, "the provider's cache has expired"
	case c.PaybackTurns > 0 && !pays(freed, rewrittenTokens(before, after), c.PaybackTurns):
		return false, ""
	case c.ClearAtLeastTokens > 0 && freed >= c.ClearAtLeastTokens:
		return true, "the batch frees enough"
	case c.EvictEveryTurns > 0 && turn-s.EvictedTurn >= c.EvictEveryTurns:
		return true, "enough turns have passed"
	default:
		return false, ""
	}
}

// rewrittenTokens is the size of the first group that differs and of all after it: the
// provider has to read them again. Both views hold the same groups.
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

// digestPart is what a digest takes of what it replaces, where it is not at its
// largest: one over so much.
const digestPart = 3

// cutPays reports whether a cut down to goal that nothing forces should go now: the view
// has passed the fraction of the target from which that is considered, and what is dropped
// pays for the digest and the tail that the provider must read again. What the digest will
// take is estimated: writing one every turn to find out would cost too much.
func (r *run) cutPays(now Result, goal uint64) bool {
	c, v := r.policy.Collapse, now.View
	used := v.Tokens()
	if now.State.AskedAsOf >= r.conv.head || !r.policy.cutsEarly() || used > r.budget.Target || used <= r.budget.Share(c.CutFrom) || used <= goal {
		return false
	}
	d := r.demand(used - goal)
	prose := r.conv.gauge.Text(r.window.summary(v, d).quote())
	gross := r.window.frees(v, r.budget, r.window.cut(v, d, prose))
	freed := gross - min(r.window.room(v, r.budget, prose), gross/digestPart)
	var front uint64
	for i := range v.anchorEnd(r.conv.head) {
		if !v.items[i].group.collapses(r.conv.head) {
			front += v.items[i].tokens
		}
	}
	rewritten := used - min(front+freed, used)
	return pays(freed, rewritten, c.CutPaybackTurns)
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

// idle reports whether so much time lies between the last model call and the
// newest event that the provider's cache has expired.
func (t eventTimes) idle(ttl time.Duration) bool {
	return ttl > 0 && !t.call.IsZero() && t.newest.Sub(t.call) > ttl
}
