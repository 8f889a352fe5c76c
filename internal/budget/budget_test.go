package budget

import (
	"errors"
	"maps"
	"math"
	"math/big"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func fraction(f float64) *float64 { return &f }

// known is a registry with two models of round numbers.
func known(t testing.TB) Models {
	t.Helper()
	models, err := NewModels(
		Override{Name: "exact", Window: 1000, Tokenizer: TokenizerO200K, Margin: fraction(0)},
		Override{Name: DefaultModel, Window: 500, Tokenizer: TokenizerHeuristic, Margin: fraction(0.2)},
	)
	if err != nil {
		t.Fatal(err)
	}
	return models
}

func TestResolve(t *testing.T) {
	with := func(change func(*Budget)) Budget {
		b := Budget{Target: 1000, MaxTokens: 1000, Tokenizer: TokenizerO200K, Model: "exact", Reasoning: SentReasoning, YellowAt: 0.7, RedAt: 0.9, Calibration: 1}
		change(&b)
		return b
	}
	for name, c := range map[string]struct {
		spec Spec
		want Budget
	}{
		"the model's entry": {Spec{Model: "exact"}, with(func(*Budget) {})},
		"nothing given": {Spec{}, with(func(b *Budget) {
			b.Target, b.MaxTokens, b.Tokenizer, b.Model = 400, 500, TokenizerHeuristic, ""
		})},
		"a model that is not known": {Spec{Model: "zz"}, with(func(b *Budget) {
			b.Target, b.MaxTokens, b.Tokenizer, b.Model = 400, 500, TokenizerHeuristic, "zz"
		})},
		"one whose window is told": {Spec{Model: "zz", MaxTokens: 100}, with(func(b *Budget) {
			b.Target, b.MaxTokens, b.Tokenizer, b.Model = 80, 100, TokenizerHeuristic, "zz"
		})},
		"and its tokenizer": {Spec{Model: "zz", MaxTokens: 100, Tokenizer: TokenizerCL100K}, with(func(b *Budget) {
			b.Target, b.MaxTokens, b.Tokenizer, b.Model = 80, 100, TokenizerCL100K, "zz"
		})},
		"a smaller window":  {Spec{Model: "exact", MaxTokens: 10}, with(func(b *Budget) { b.Target, b.MaxTokens = 10, 10 })},
		"another tokenizer": {Spec{Model: "exact", Tokenizer: TokenizerCL100K}, with(func(b *Budget) { b.Tokenizer = TokenizerCL100K })},
		"reserves": {Spec{Model: "exact", OutputReserve: 100, InjectionReserve: 20, OverheadTokens: 3}, with(func(b *Budget) {
			b.Target, b.InjectionReserve, b.OverheadTokens = 877, 20, 3
		})},
		"all but one token":   {Spec{Model: "exact", OutputReserve: 900, InjectionReserve: 90, OverheadTokens: 9}, with(func(b *Budget) { b.Target, b.InjectionReserve, b.OverheadTokens = 1, 90, 9 })},
		"margin":              {Spec{Model: "exact", SafetyMargin: fraction(0.1)}, with(func(b *Budget) { b.Target = 900 })},
		"margin of none":      {Spec{SafetyMargin: fraction(0)}, with(func(b *Budget) { b.Target, b.MaxTokens, b.Tokenizer, b.Model = 500, 500, TokenizerHeuristic, "" })},
		"margin, rounded":     {Spec{Model: "exact", SafetyMargin: fraction(0.0001)}, with(func(b *Budget) { b.Target = 999 })},
		"margin of what left": {Spec{Model: "exact", OutputReserve: 500, SafetyMargin: fraction(0.1)}, with(func(b *Budget) { b.Target = 450 })},
		"thresholds":          {Spec{Model: "exact", YellowAt: 0.5, RedAt: 0.5}, with(func(b *Budget) { b.YellowAt, b.RedAt = 0.5, 0.5 })},
		"only at the end":     {Spec{Model: "exact", YellowAt: 1, RedAt: 1}, with(func(b *Budget) { b.YellowAt, b.RedAt = 1, 1 })},
		"returned reasoning": {Spec{Model: "deepseek-v4-pro", MaxTokens: 100, SafetyMargin: fraction(0)}, with(func(b *Budget) {
			b.Target, b.MaxTokens, b.Tokenizer, b.Model, b.Reasoning = 100, 100, TokenizerHeuristic, "deepseek-v4-pro", ReturnedReasoning
		})},
		"no caps": {Spec{Model: "exact", TierCaps: map[Tier]float64{}}, with(func(*Budget) {})},
		"caps of the target": {Spec{Model: "exact", OutputReserve: 500, TierCaps: map[Tier]float64{TierSystem: 1, TierSummary: 0.25, TierToolResults: 0.333, TierDialogue: 0.0001}}, with(func(b *Budget) {
			b.Target = 500
			b.Caps = map[Tier]uint64{TierSystem: 500, TierSummary: 125, TierToolResults: 166, TierDialogue: 0}
			b.CapFractions = map[Tier]float64{TierSystem: 1, TierSummary: 0.25, TierToolResults: 0.333, TierDialogue: 0.0001}
		})},
	} {
		got, err := c.spec.Resolve(known(t))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n got %+v (%v)\nwant %+v", name, got, err, c.want)
		}
	}
}

func TestResolveOwnsItsCaps(t *testing.T) {
	caps := map[Tier]float64{TierSummary: 0.5}
	b, err := Spec{Model: "exact", TierCaps: caps}.Resolve(known(t))
	caps[TierSummary] = 0.1
	if err != nil || !maps.Equal(b.CapFractions, map[Tier]float64{TierSummary: 0.5}) {
		t.Errorf("%+v (%v)", b, err)
	}
}

func TestResolveNamesTheFieldAtFault(t *testing.T) {
	nan := math.NaN()
	capped := func(all map[Tier]float64) Spec { return Spec{Model: "exact", TierCaps: all} }
	for name, c := range map[string]struct {
		spec          Spec
		field, reason string
	}{
		"output takes all":     {Spec{Model: "exact", OutputReserve: 1000}, "output_reserve", "1000 tokens leave nothing of the 1000 that remain of max_tokens 1000"},
		"output overflows":     {Spec{Model: "exact", OutputReserve: math.MaxUint64}, "output_reserve", "leave nothing"},
		"injections":           {Spec{Model: "exact", OutputReserve: 600, InjectionReserve: 400}, "injection_reserve", "400 tokens leave nothing of the 400 that remain"},
		"overhead":             {Spec{Model: "exact", OutputReserve: 600, InjectionReserve: 100, OverheadTokens: 301}, "overhead_tokens", "301 tokens leave nothing of the 300 that remain"},
		"margin below 0":       {Spec{Model: "exact", SafetyMargin: fraction(-0.1)}, "safety_margin", "at least 0 and less than 1"},
		"margin of 1":          {Spec{Model: "exact", SafetyMargin: fraction(1)}, "safety_margin", "at least 0 and less than 1"},
		"margin that is none":  {Spec{Model: "exact", SafetyMargin: &nan}, "safety_margin", "at least 0 and less than 1"},
		"margin takes all":     {Spec{Model: "exact", OutputReserve: 999, SafetyMargin: fraction(0.5)}, "safety_margin", "leaves no tokens"},
		"margin of the model":  {Spec{MaxTokens: 1}, "max_tokens", "1 leaves no tokens for the messages, as a share of 0.2 is kept free"},
		"margin of nearly 1":   {Spec{Model: "exact", SafetyMargin: fraction(0.9999999)}, "safety_margin", "leaves no tokens"},
		"yellow below 0":       {Spec{Model: "exact", YellowAt: -1}, "yellow_at", "greater than 0"},
		"yellow above 1":       {Spec{Model: "exact", YellowAt: 1.1, RedAt: 1.2}, "yellow_at", "at most 1"},
		"yellow that is none":  {Spec{Model: "exact", YellowAt: nan}, "yellow_at", "greater than 0"},
		"red before yellow":    {Spec{Model: "exact", YellowAt: 0.8, RedAt: 0.7}, "red_at", "not below yellow_at"},
		"red before default":   {Spec{Model: "exact", RedAt: 0.5}, "red_at", "not below yellow_at"},
		"default before that":  {Spec{Model: "exact", YellowAt: 0.95}, "red_at", "not below yellow_at"},
		"red above 1":          {Spec{Model: "exact", RedAt: 1.01}, "red_at", "at most 1"},
		"red that is none":     {Spec{Model: "exact", RedAt: nan}, "red_at", "not below yellow_at"},
		"no such tier":         {capped(map[Tier]float64{"soup": 0.5}), `tier_caps["soup"]`, "is no tier; the tiers are system, summary, tool_results and dialogue"},
		"cap of 0":             {capped(map[Tier]float64{TierSummary: 0}), `tier_caps["summary"]`, "greater than 0"},
		"cap above 1":          {capped(map[Tier]float64{TierSystem: 1.5}), `tier_caps["system"]`, "at most 1"},
		"cap that is none":     {capped(map[Tier]float64{TierDialogue: nan}), `tier_caps["dialogue"]`, "greater than 0"},
		"the first wrong one":  {capped(map[Tier]float64{TierToolResults: 2, TierSystem: 2, TierSummary: 0, TierDialogue: 0.5, "z": 1}), `tier_caps["summary"]`, "greater than 0"},
		"an endless threshold": {Spec{Model: "exact", RedAt: math.Inf(1)}, "red_at", "at most 1"},
	} {
		for range 5 { // maps are walked in another order each time
			b, err := c.spec.Resolve(known(t))
			var bad *SpecError
			if !errors.As(err, &bad) || bad.Field != c.field || !strings.Contains(bad.Reason, c.reason) || !reflect.DeepEqual(b, Budget{}) {
				t.Fatalf("%s: %v (%+v)", name, err, b)
			}
			if want := "budget." + c.field + ": " + bad.Reason; err.Error() != want {
				t.Errorf("%s: reads %q, want %q", name, err, want)
			}
		}
	}
	var bad *SpecError
	if _, err := (Spec{}).Resolve(Models{}); !errors.As(err, &bad) || bad.Field != "max_tokens" {
		t.Errorf("without a registry: %v", err)
	}
}

func TestTiersHaveTheirCaps(t *testing.T) {
	all := Tiers()
	if want := []Tier{"system", "summary", "tool_results", "dialogue"}; !reflect.DeepEqual(all, want) {
		t.Errorf("%v, want %v", all, want)
	}
	for _, tier := range all {
		if err := checkCap(tier, 1); err != nil {
			t.Errorf("%s: %v", tier, err)
		}
	}
}

func TestStateOf(t *testing.T) {
	b := Budget{Target: 1000, YellowAt: 0.7, RedAt: 0.9}
	for used, want := range map[uint64]State{
		0: Green, 699: Green, 700: Yellow, 899: Yellow, 900: Red, 1000: Red, math.MaxUint64: Red,
	} {
		if got := b.StateOf(used); got != want {
			t.Errorf("%d tokens: %d, want %d", used, got, want)
		}
	}
	b = Budget{Target: 999, YellowAt: 0.5, RedAt: 0.5} // thresholds are rounded down
	if b.StateOf(498) != Green || b.StateOf(499) != Red {
		t.Errorf("%d and %d", b.StateOf(498), b.StateOf(499))
	}
}

func TestPartsPerMillion(t *testing.T) {
	for f, want := range map[float64]uint64{0: 0, 4e-7: 0, 5e-7: 1, 1e-6: 1, 0.1: 100_000, 1.0 / 3: 333_333, 2.0 / 3: 666_667, 1: 1_000_000} {
		if got := PartsPerMillion(f); got != want {
			t.Errorf("%v: %d, want %d", f, got, want)
		}
	}
	if a, b := PartsPerMillion(0.1+0.2), PartsPerMillion(0.3); a != b {
		t.Errorf("the same fraction is %d and %d", a, b)
	}
}

// A share is exact in whole numbers however large the target is.
func TestShareAgainstBigNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		target := rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 3_000_000)).Draw(t, "target")
		ppm := rapid.Uint64Range(0, 1_000_000).Draw(t, "parts per million")
		f := float64(ppm) / 1e6
		n := new(big.Int).SetUint64(target)
		n.Mul(n, new(big.Int).SetUint64(ppm)).Quo(n, big.NewInt(1_000_000))
		if got := (Budget{Target: target}).Share(f); !n.IsUint64() || got != n.Uint64() {
			t.Errorf("%v of %d: %d, want %s", f, target, got, n)
		}
	})
}

// The target is what the reserves leave, less the margin, or there is no budget.
func TestTargetAgainstBigNumbers(t *testing.T) {
	models := known(t)
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 2000))
		s := Spec{
			MaxTokens: size.Draw(t, "max"), OutputReserve: size.Draw(t, "output"), InjectionReserve: size.Draw(t, "injections"),
			OverheadTokens: size.Draw(t, "overhead"), SafetyMargin: fraction(rapid.Float64Range(0, 0.99).Draw(t, "margin")),
		}
		b, err := s.Resolve(models)
		left := new(big.Int).SetUint64(b.MaxTokens)
		if err != nil {
			left.SetUint64(s.MaxTokens)
			if s.MaxTokens == 0 {
				left.SetUint64(500)
			}
		}
		for _, n := range []uint64{s.OutputReserve, s.InjectionReserve, s.OverheadTokens} {
			left.Sub(left, new(big.Int).SetUint64(n))
		}
		ppm := int64(math.Round((1 - *s.SafetyMargin) * 1e6))
		target := new(big.Int).Mul(left, big.NewInt(ppm))
		target.Quo(target, big.NewInt(1_000_000))
		if fits := left.Sign() > 0 && target.Sign() > 0; fits != (err == nil) {
			t.Fatalf("%+v: %v, and %s tokens are left", s, err, left)
		}
		if err == nil && target.Cmp(new(big.Int).SetUint64(b.Target)) != 0 {
			t.Errorf("%+v: target %d, want %s", s, b.Target, target)
		}
	})
}
