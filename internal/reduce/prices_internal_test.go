package reduce

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/budget"
)

func TestWhatARewritePays(t *testing.T) {
	anthropic := Prices{CacheRead: 100, CacheWrite: 1250, MinCachedTokens: 1024}
	for name, c := range map[string]struct {
		w      rewrite
		prices Prices
		turns  uint32 // the first within which it pays; 0 is never
	}{
		"by the default":                    {rewrite{50_000, 10_000, 10_000}, Prices{}, 12},
		"writing costs nothing more":        {rewrite{50_000, 10_000, 10_000}, Prices{CacheRead: 100, CacheWrite: 1000}, 9},
		"reading costs half":                {rewrite{50_000, 10_000, 10_000}, Prices{CacheRead: 500, CacheWrite: 1000}, 1},
		"nothing is cached":                 {rewrite{50_000, 1, 10_000}, Prices{CacheRead: 1000, CacheWrite: 1000}, 1},
		"reading is free":                   {rewrite{50_000, 10_000, 1}, Prices{CacheWrite: 1250}, 0},
		"what stays is cached":              {rewrite{12_048, 10_000, 1000}, anthropic, 2},
		"what stays in front is too short":  {rewrite{12_048, 10_000, 1025}, anthropic, 3},
		"nothing was cached":                {rewrite{1023, 1, 1000}, anthropic, 1},
		"nothing is cached any more":        {rewrite{2000, 1000, 10}, anthropic, 0},
		"so little is left that it is less": {rewrite{9000, 8500, 10}, anthropic, 1},
	} {
		var got uint32
		for turns := uint32(40); turns > 0; turns-- {
			if c.w.pays(c.prices, turns) {
				got = turns
			}
		}
		if got != c.turns {
			t.Errorf("%s: pays within %d turns, want %d", name, got, c.turns)
		}
	}
}

func TestWhatARewriteOfAColdCachePays(t *testing.T) {
	short := Prices{CacheRead: 100, CacheWrite: 1250, MinCachedTokens: 1024}
	for name, c := range map[string]struct {
		w      rewrite
		prices Prices
		want   bool
	}{
		"a tenth":             {rewrite{50_000, 1023, 10_000}, Prices{}, true},
		"as much as it costs": {rewrite{50_000, 46, 450}, Prices{}, true},
		"less":                {rewrite{50_000, 1022, 10_000}, Prices{}, false},
		"of a longer rest":    {rewrite{11_023, 1023, 10_000}, short, true},
		"of all that is left": {rewrite{11_022, 1022, 9999}, short, false},
		"nothing was cached":  {rewrite{1000, 1, 900}, short, true},
	} {
		if got := c.w.coldPays(c.prices); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestIdle(t *testing.T) {
	call := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		times eventTimes
		ttl   time.Duration
		want  bool
	}{
		"longer":                   {eventTimes{call, call.Add(time.Minute + 1)}, time.Minute, true},
		"as long":                  {eventTimes{call, call.Add(time.Minute)}, time.Minute, false},
		"for no time that matters": {eventTimes{call, call.Add(time.Minute)}, 0, false},
		"without a call":           {eventTimes{newest: call}, time.Minute, false},
	} {
		if got := c.times.idle(c.ttl); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// What is left, what was sent and what is read again are never in the way of a price, and
// whoever must pay less for a rewrite never does it later.
func TestARewritePaysSoonerWhereReadingItAgainIsCheaper(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sent := rapid.Uint64Range(1, 1_000_000_000).Draw(t, "sent")
		freed := rapid.Uint64Range(0, sent).Draw(t, "freed")
		w := rewrite{sent, freed, rapid.Uint64Range(0, sent-freed).Draw(t, "again")}
		p := PricesOf(budget.Prices{
			CacheRead: rapid.Float64Range(0, 1).Draw(t, "read"), CacheWrite: rapid.Float64Range(1, 10).Draw(t, "write"),
			MinCachedTokens: rapid.Uint64Range(0, 10_000).Draw(t, "min"),
		})
		turns := rapid.Uint32Range(1, 1_000_000).Draw(t, "turns")
		cheaper := p
		cheaper.CacheWrite = rapid.Uint64Range(1000, p.CacheWrite).Draw(t, "cheaper")
		if p.CacheRead > 0 && w.pays(p, turns) && !w.pays(cheaper, turns) {
			t.Fatal("it pays at the higher price alone")
		}
		if w.pays(p, turns) && !w.pays(p, turns+1) {
			t.Fatal("it pays within fewer turns alone")
		}
	})
}
