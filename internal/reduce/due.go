package reduce

import (
	"time"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
)

// What a token of the prompt costs relative to its plain price: served from the
// provider's cache, and written to it.
const (
	cachedPrice = 10  // percent
	writePrice  = 125 // percent
)

// coldPart is the part of the view, one over so much, that a batch must free although
// the provider's cache has expired: what it lets go is gone, and whether the cache
// has expired is only a guess.
const coldPart = 5

// due reports whether a batch of evictions that nothing forces should go now,
// and why. before and after are the views without and with it.
func (c Cache) due(before, after View, s State, turn uint32, cold bool) (bool, string) {
	if after.Tokens() >= before.Tokens() {
		return false, ""
	}
	freed := before.Tokens() - after.Tokens()
	if cold && freed >= before.Tokens()/coldPart {
		return true, "the provider's cache has expired"
	}
	if c.PaybackTurns > 0 {
		rewritten := rewrittenTokens(before, after)
		if freed*cachedPrice*uint64(c.PaybackTurns) < rewritten*(writePrice-cachedPrice) {
			return false, ""
		}
	}
	switch {
	case c.ClearAtLeastTokens > 0 && freed >= c.ClearAtLeastTokens:
		return true, "the batch frees enough"
	case c.EvictEveryTurns > 0 && turn-s.EvictedTurn >= c.EvictEveryTurns:
		return true, "enough turns have passed"
	default:
		return false, ""
	}
}

// digestPart is what a digest takes of what it stands for, where it is not at its
// largest: one over so much.
const digestPart = 3

// pays reports whether a cut down to goal that nothing forces should go now: the view
// has passed the fraction of the target from which that is considered, and what leaves
// pays within so many turns, at the cached price, for the digest and the tail that the
// provider must read anew. What the digest will take is estimated: writing one every
// turn to find out would cost more than it tells.
func (p *Pipeline) pays(b budget.Budget, r Result, goal uint64) bool {
	c, v := p.policy.Collapse, r.View
	used := v.Tokens()
	if r.State.AskedAsOf >= p.conv.head || c.CutFrom == 0 || c.CutPaybackTurns == 0 || used > b.Target || used <= b.Share(c.CutFrom) || used <= goal {
		return false
	}
	b.Excess = used - goal
	prose := p.window.digests.gauge.Text(p.window.summary(v, b).quote())
	gross := p.window.frees(v, b, p.window.cut(v, b, prose))
	freed := gross - min(p.window.room(v, b, prose), gross/digestPart)
	var front uint64
	for i := range v.anchorEnd(p.conv.head) {
		if !v.items[i].group.collapses(p.conv.head) {
			front += v.items[i].tokens
		}
	}
	rewritten := used - min(front+freed, used)
	return freed*cachedPrice*uint64(c.CutPaybackTurns) >= rewritten*(writePrice-cachedPrice)
}

// rewrittenTokens is what stands at and behind the first group that differs: the
// provider has to read it anew. Both views hold the same groups.
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

// eventTimes tells from the log alone how long a session was idle.
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
