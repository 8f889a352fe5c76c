package records_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
)

func fixedPolicy() reduce.Policy {
	turns := uint32(8)
	return reduce.Policy{
		ToolResults: reduce.ToolResults{
			Default: reduce.Retention{Turns: 4, MinTokens: 600},
			ByTool:  map[string]reduce.Retention{"read": {Last: 3}, "bash": {Turns: 2}, "mcp__*": {Never: true}},
		},
		Duplicates: true,
		Thinking:   reduce.Thinking{KeepTurns: &turns},
		Collapse:   reduce.Collapse{To: 0.35, KeepLastTurns: 2, LedgerShare: 0.08, IndexShare: 0.1},
		Cache:      reduce.Cache{TTL: 5 * time.Minute},
	}
}

func resolve(t interface{ Fatal(...any) }, change func(*budget.Spec)) budget.Budget {
	models, err := budget.NewModels()
	if err != nil {
		t.Fatal(err)
	}
	s := budget.Spec{Model: "gpt-4o", MaxTokens: 100_000, Tokenizer: budget.TokenizerO200K}
	change(&s)
	b, err := s.Resolve(models)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Records hold fingerprints, so the same policy and budget must give the same one in every process and
// release. If a value here changes, every session loses its decisions.
func TestFingerprintStaysTheSame(t *testing.T) {
	for want, b := range map[string]budget.Budget{
		"42be2890ef9f09a2": resolve(t, func(*budget.Spec) {}),
		"d7923fc1051b977c": resolve(t, func(s *budget.Spec) {
			s.TierCaps = map[budget.Tier]float64{budget.TierSummary: 0.1, budget.TierToolResults: 0.5}
		}),
	} {
		if got := records.Fingerprint(projection.Options{}, fixedPolicy(), b); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestFingerprintTellsApart(t *testing.T) {
	same := func(*budget.Spec) {}
	caps := func(all map[budget.Tier]float64) func(*budget.Spec) {
		return func(s *budget.Spec) { s.TierCaps = all }
	}
	seen := map[string]string{}
	for name, c := range map[string]struct {
		policy string
		change func(*reduce.Policy)
		budget func(*budget.Spec)
	}{
		"the first":         {"raw", func(*reduce.Policy) {}, same},
		"projection policy": {"other", func(*reduce.Policy) {}, same},
		"retention":         {"raw", func(p *reduce.Policy) { p.ToolResults.Default.Turns = 5 }, same},
		"a tool's rule":     {"raw", func(p *reduce.Policy) { p.ToolResults.ByTool["read"] = reduce.Retention{Last: 4} }, same},
		"no duplicates":     {"raw", func(p *reduce.Policy) { p.Duplicates = false }, same},
		"thinking for ever": {"raw", func(p *reduce.Policy) { p.Thinking.KeepTurns = nil }, same},
		"thinking for less": {"raw", func(p *reduce.Policy) { *p.Thinking.KeepTurns = 7 }, same},
		"depth":             {"raw", func(p *reduce.Policy) { p.Collapse.To = 0.36 }, same},
		"working set":       {"raw", func(p *reduce.Policy) { p.Collapse.WorkingSetShare = 0.08 }, same},
		"a model's prices":  {"raw", func(p *reduce.Policy) { p.Cache.Prices = reduce.Prices{CacheRead: 100, CacheWrite: 1000} }, same},
		"a shortest prefix": {"raw", func(p *reduce.Policy) {
			p.Cache.Prices = reduce.Prices{CacheRead: 100, CacheWrite: 1000, MinCachedTokens: 1}
		}, same},
		"a recall tool":       {"raw", func(p *reduce.Policy) { p.Recall = "recall" }, same},
		"time to live":        {"raw", func(p *reduce.Policy) { p.Cache.TTL++ }, same},
		"depth that is none":  {"raw", func(p *reduce.Policy) { p.Collapse.To = math.NaN() }, same},
		"both":                {"raw", func(p *reduce.Policy) { p.Collapse.To = math.NaN(); p.Duplicates = false }, same},
		"depth beyond reason": {"raw", func(p *reduce.Policy) { p.Collapse.To = math.Inf(1) }, same},
		"window":              {"raw", func(*reduce.Policy) {}, func(s *budget.Spec) { s.MaxTokens++ }},
		"tokenizer":           {"raw", func(*reduce.Policy) {}, func(s *budget.Spec) { s.Tokenizer = budget.TokenizerHeuristic }},
		"a cap":               {"raw", func(*reduce.Policy) {}, caps(map[budget.Tier]float64{budget.TierSummary: 0.1})},
		"a larger cap":        {"raw", func(*reduce.Policy) {}, caps(map[budget.Tier]float64{budget.TierSummary: 0.2})},
		"another tier's":      {"raw", func(*reduce.Policy) {}, caps(map[budget.Tier]float64{budget.TierSystem: 0.1})},
		"two caps":            {"raw", func(*reduce.Policy) {}, caps(map[budget.Tier]float64{budget.TierSystem: 0.1, budget.TierSummary: 0.2})},
		"two caps, exchanged": {"raw", func(*reduce.Policy) {}, caps(map[budget.Tier]float64{budget.TierSystem: 0.2, budget.TierSummary: 0.1})},
	} {
		fingerprint := func() string {
			p := fixedPolicy()
			c.change(&p)
			return records.Fingerprint(projection.Options{Name: c.policy}, p, resolve(t, c.budget))
		}
		got := fingerprint()
		if len(got) != 16 {
			t.Errorf("%s: %q", name, got)
		}
		if other, ok := seen[got]; ok {
			t.Errorf("%s and %s have the fingerprint %s", name, other, got)
		}
		seen[got] = name
		for range 10 { // maps are walked in another order each time, and pointers differ
			if again := fingerprint(); again != got {
				t.Fatalf("%s: %s and %s", name, got, again)
			}
		}
	}
}

func TestFingerprintOfTheDefaultPricesIsThatOfNone(t *testing.T) {
	b, p := resolve(t, func(*budget.Spec) {}), fixedPolicy()
	want := records.Fingerprint(projection.Options{}, p, b)
	p.Cache.Prices = reduce.DefaultPrices()
	if got := records.Fingerprint(projection.Options{}, p, b); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A change of the reserves must not rewrite the context.
func TestFingerprintLeavesReservesOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		caps := map[budget.Tier]float64{}
		for _, tier := range budget.Tiers() {
			if rapid.Bool().Draw(t, "capped") {
				caps[tier] = rapid.Float64Range(1e-6, 1).Draw(t, string(tier))
			}
		}
		one := resolve(t, func(s *budget.Spec) { s.TierCaps = caps })
		margin := rapid.Float64Range(0, 0.9).Draw(t, "margin")
		two := resolve(t, func(s *budget.Spec) {
			s.TierCaps = caps
			s.OutputReserve = rapid.Uint64Range(0, 30_000).Draw(t, "output")
			s.InjectionReserve = rapid.Uint64Range(0, 30_000).Draw(t, "injections")
			s.OverheadTokens = rapid.Uint64Range(0, 30_000).Draw(t, "overhead")
			s.SafetyMargin = &margin
			s.YellowAt, s.RedAt = 0.5, 0.6
			s.Model = "another"
		})
		if a, b := records.Fingerprint(projection.Options{}, fixedPolicy(), one), records.Fingerprint(projection.Options{}, fixedPolicy(), two); a != b {
			t.Errorf("%s and %s for %+v and %+v", a, b, one, two)
		}
	})
}

// What model calls teach must not discard decisions.
func TestFingerprintLeavesCalibrationOut(t *testing.T) {
	b := resolve(t, func(s *budget.Spec) {
		s.TierCaps = map[budget.Tier]float64{budget.TierSummary: 0.1, budget.TierToolResults: 0.5}
	})
	want := records.Fingerprint(projection.Options{}, fixedPolicy(), b)
	rapid.Check(t, func(t *rapid.T) {
		var c budget.Calibration
		for range rapid.IntRange(1, 10).Draw(t, "calls") {
			estimated, counted := rapid.Uint64Range(500, 200_000).Draw(t, "estimated"), rapid.Uint64Range(500, 200_000).Draw(t, "real")
			if rapid.Bool().Draw(t, "rejected") {
				c = c.Reject(estimated, counted)
			} else {
				c = c.Observe(estimated, counted)
			}
		}
		calibrated := b.Calibrated(c)
		if got := records.Fingerprint(projection.Options{}, fixedPolicy(), calibrated); got != want {
			t.Errorf("%s, and %s for a calibration of %v", want, got, calibrated.Calibration)
		}
	})
}

// Roots change from request to request, and must not discard decisions.
func TestFingerprintLeavesRootsOut(t *testing.T) {
	b := resolve(t, func(*budget.Spec) {})
	least := uint32(9)
	of := func(o projection.Options) string {
		o.Name, o.MinChars = projection.ReachabilityGC, &least
		return records.Fingerprint(o, fixedPolicy(), b)
	}
	want := of(projection.Options{})
	if got := of(projection.Options{Roots: []string{"r"}, ActivePlan: "p", Scratchpad: "s", PendingToolArgs: []string{"a"}, UnresolvedFindings: []string{"f"}, WriteBarrierRefs: []string{"w"}}); got != want {
		t.Errorf("%s with roots, %s without", got, want)
	}
	if got := of(projection.Options{KeepLast: 3}); got == want {
		t.Errorf("other options have the same fingerprint %s", got)
	}
}
