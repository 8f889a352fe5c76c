package budget

import (
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// resolvedBudget draws a budget as Resolve makes it.
func resolvedBudget(t *rapid.T) Budget {
	window := rapid.Uint64Range(2_000, 2_000_000).Draw(t, "window")
	part := rapid.Uint64Range(0, window/4)
	s := Spec{
		MaxTokens: window, OutputReserve: part.Draw(t, "output"), InjectionReserve: part.Draw(t, "injections"),
		OverheadTokens: part.Draw(t, "overhead"), SafetyMargin: fraction(rapid.Float64Range(0, 0.5).Draw(t, "margin")),
	}
	for _, tier := range Tiers() {
		if rapid.Bool().Draw(t, "capped") {
			if s.TierCaps == nil {
				s.TierCaps = map[Tier]float64{}
			}
			s.TierCaps[tier] = rapid.Float64Range(0.001, 1).Draw(t, "cap")
		}
	}
	models, err := NewModels()
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.Resolve(models)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestCalibratedBudgets(t *testing.T) {
	with := func(ppm uint64) Calibration { return Calibration{Average: ppm} }
	caps := map[Tier]uint64{TierSummary: 100, TierToolResults: 500, TierSystem: 1, TierDialogue: 0}
	for name, c := range map[string]struct {
		b      Budget
		by     Calibration
		target uint64
		caps   map[Tier]uint64
	}{
		"nothing learnt":              {Budget{Target: 1000, Caps: caps}, Calibration{}, 1000, caps},
		"a quarter more":              {Budget{Target: 1000, Caps: caps}, with(1_250_000), 800, map[Tier]uint64{TierSummary: 80, TierToolResults: 400, TierSystem: 1, TierDialogue: 0}},
		"rounded down":                {Budget{Target: 1000}, with(1_100_000), 909, nil},
		"twice as many":               {Budget{Target: 1000}, with(2_000_000), 500, nil},
		"never 0":                     {Budget{Target: 1}, with(2_000_000), 1, nil},
		"no target":                   {Budget{}, with(2_000_000), 0, nil},
		"messages stand in":           {Budget{Target: 1000, InjectionReserve: 200}, with(1_250_000), 760, nil},
		"but not with more than half": {Budget{Target: 1000, InjectionReserve: 10_000}, with(1_250_000), 400, nil},
		"a fifth less":                {Budget{Target: 1000, MaxTokens: 9000}, with(800_000), 1250, nil},
		"and smaller injections":      {Budget{Target: 1000, InjectionReserve: 200, MaxTokens: 9000}, with(800_000), 1300, nil},
		"not beyond the window":       {Budget{Target: 1000, InjectionReserve: 100, OverheadTokens: 50, MaxTokens: 1200}, with(800_000), 1050, nil},
		"nor below what it was":       {Budget{Target: 1000, InjectionReserve: 400, MaxTokens: 1200}, with(800_000), 1000, nil},
	} {
		given := maps.Clone(c.b.Caps)
		got := c.b.Calibrated(c.by)
		want := c.b
		want.Target, want.Caps, want.Calibration = c.target, c.caps, c.by.Factor()
		if c.b.Caps != nil && c.caps == nil {
			want.Caps = c.b.Caps
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, want)
		}
		if !maps.Equal(given, c.b.Caps) {
			t.Errorf("%s: the budget's own caps became %v", name, c.b.Caps)
		}
	}
}

// Whatever was learnt, the messages and a full reserve take no more real tokens than were granted, unless
// the reserve alone takes most of them. A larger factor never gives more room. Caps keep their fractions.
func TestCalibratedKeepsWhatWasGranted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, c := resolvedBudget(t), learnt(t)
		got := b.Calibrated(c)
		if got.Target == 0 || got.Factor() != c.Factor() || got.InjectionReserve != b.InjectionReserve {
			t.Fatalf("%+v became %+v", b, got)
		}
		half := mulDiv(b.Target, million, c.ppm()) / 2
		if counted := got.Real(got.Target + got.InjectionReserve); counted > b.Target+b.InjectionReserve && got.Target > max(half, 1) {
			t.Errorf("%+v grants %d real tokens, %+v takes %d", b, b.Target+b.InjectionReserve, got, counted)
		}
		if counted := got.Real(got.Target); c.ppm() >= million && counted > b.Target && got.Target > 1 {
			t.Errorf("the messages may take %d real tokens of %d", counted, b.Target)
		}
		if estimated := got.Target + got.InjectionReserve + got.OverheadTokens; got.Target > b.Target && estimated > b.MaxTokens {
			t.Errorf("%d estimated tokens in a window of %d", estimated, b.MaxTokens)
		}
		if stricter := b.Calibrated(c.Reject(0, 0)); stricter.Target > got.Target {
			t.Errorf("a rejection raised the target from %d to %d", got.Target, stricter.Target)
		}
		for tier, limit := range b.Caps {
			if now := got.Caps[tier]; limit > 0 && now == 0 || limit <= b.Target && now > got.Target {
				t.Errorf("the cap of %s went from %d of %d to %d of %d", tier, limit, b.Target, now, got.Target)
			}
		}
	})
}

// Real is monotonic, so a context within its target is also reported as within it.
func TestRealKeepsOrder(t *testing.T) {
	for estimated, want := range map[uint64]uint64{0: 0, 1: 2, 10: 11, 11: 13, math.MaxUint64: math.MaxUint64} {
		if got := (Budget{Calibration: 1.1}).Real(estimated); got != want {
			t.Errorf("%d is %d, want %d", estimated, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		b := Budget{Calibration: learnt(t).Factor()}
		size := rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 1000))
		one, two := size.Draw(t, "one"), size.Draw(t, "two")
		if one > two {
			one, two = two, one
		}
		if b.Real(one) > b.Real(two) {
			t.Errorf("%d is %d and %d is %d", one, b.Real(one), two, b.Real(two))
		}
	})
}

// Budgets that were stored before there was calibration count as they did then.
func TestBudgetsOfOldRecords(t *testing.T) {
	var b Budget
	if err := json.Unmarshal([]byte(`{"Target":900,"MaxTokens":1000,"InjectionReserve":0,"Tokenizer":"o200k_base","Model":"","YellowAt":0.7,"RedAt":0.9,"Caps":null,"CapFractions":null,"Excess":0}`), &b); err != nil {
		t.Fatal(err)
	}
	if b.Factor() != 1 || b.Real(123) != 123 || b.Target != 900 {
		t.Errorf("%+v has the factor %v", b, b.Factor())
	}
	text, err := json.Marshal(b.Calibrated(Calibration{Average: 1_234_567}))
	if err != nil {
		t.Fatal(err)
	}
	var back Budget
	if err := json.Unmarshal(text, &back); err != nil || back.Factor() != 1.234567 || back.Real(1_000_000) != 1_234_567 {
		t.Errorf("%s is read as %+v (%v)", text, back, err)
	}
}
