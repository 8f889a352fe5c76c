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

// due reports whether a batch of evictions that nothing forces should go now,
// and why. before and after are the views without and with it.
func (c Cache) due(before, after View, s State, turn uint32, cold bool) (bool, string) {
	if after.Tokens() >= before.Tokens() {
		return false, ""
	}
	freed := before.Tokens() - after.Tokens()
	if cold {
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
