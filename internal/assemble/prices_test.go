package assemble_test

import (
	"testing"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/reduce"
)

// Rewrites pay at the prices of the budget's model, unless the policy sets prices.
func TestRewritesPayAtTheModelsPrices(t *testing.T) {
	// rewrites replays a session that has room, and counts what was rewritten although
	// nothing forced it.
	rewrites := func(model string, prices reduce.Prices) (n int, fingerprint string) {
		store := memlog.New()
		defer closeStore(t, store)
		engine := newEngine(t, store)
		push(t, store, "s", opening()...)
		req := request()
		req.Budget = budget.Spec{Model: model, MaxTokens: 60_000, Tokenizer: budget.TokenizerO200K}
		cache := &req.Policy.Reduction.Cache
		cache.EvictEveryTurns, cache.ClearAtLeastTokens, cache.TTL, cache.Prices = 1, 0, 0, prices
		req.Policy.Reduction.ToolResults.Default.MinTokens = 100
		for i := range 40 {
			push(t, store, "s", turn(i)...)
			out := mustAssemble(t, engine, req)
			if out.Cache.BrokenBy != "" {
				n++
			}
			if replay, err := engine.Replay(t.Context(), "s", out.Projection.ID); err != nil || !replay.Same {
				t.Fatalf("a replay differs: %s, %v", replay.Difference, err)
			}
			fingerprint = out.Projection.Fingerprint
		}
		return n, fingerprint
	}
	unknown, byDefault := rewrites("", reduce.Prices{})
	for name, c := range map[string]struct {
		model  string
		prices reduce.Prices
		more   bool
	}{
		"half for what is read":           {model: "gpt-4o", more: true},
		"nothing is cached":               {model: "gpt-4", more: true},
		"a policy's own":                  {prices: reduce.Prices{CacheRead: 500, CacheWrite: 1000}, more: true},
		"too short for the cache":         {prices: reduce.Prices{CacheRead: 100, CacheWrite: 1250, MinCachedTokens: 1_000_000}, more: true},
		"a policy's instead of a model's": {model: "gpt-4o", prices: reduce.DefaultPrices()},
		"a model without its own":         {model: "qwen3-max"},
	} {
		got, fingerprint := rewrites(c.model, c.prices)
		if c.more != (got > unknown) || !c.more && got != unknown {
			t.Errorf("%s: %d rewrites, %d by default", name, got, unknown)
		}
		if c.more == (fingerprint == byDefault) {
			t.Errorf("%s: the fingerprint is %s, by default %s", name, fingerprint, byDefault)
		}
	}
}
