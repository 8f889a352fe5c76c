package main

import (
	"testing"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/budget/bpe"
	"github.com/contextd/contextd/internal/evaluate"
	"github.com/contextd/contextd/internal/reduce"
)

// traceWindows are the windows at which the default policy is tested on the synthetic trace. The smallest
// holds a third of it, the largest all.
var traceWindows = map[string]uint64{"20k": 20_000, "32k": 32_768, "128k": 131_072, "200k": 200_000}

// traceFigures measures the synthetic trace under a policy; cost is relative to
// sending everything.
func traceFigures(tb testing.TB, tokens uint64) (f evaluate.Figures, cost float64) {
	tb.Helper()
	encoding, err := bpe.Open(budget.TokenizerO200K)
	if err != nil {
		tb.Fatal(err)
	}
	gauge := budget.NewGauge(encoding)
	s, err := traceSession(gauge)
	if err != nil {
		tb.Fatal(err)
	}
	b, err := resolve(tokens)
	if err != nil {
		tb.Fatal(err)
	}
	all := evaluate.Measure(s, gauge, &evaluate.Results{}, 1<<60)
	frugal, err := evaluate.NewContextd(tb.Context(), assemble.Policy{Reduction: reduce.FrugalPolicy()}, b, budget.Model{Prices: budget.DefaultPrices()})
	if err != nil {
		tb.Fatal(err)
	}
	f = evaluate.Measure(s, gauge, frugal, b.Target)
	return f, f.Cost / all.Cost
}

// The best policy of other projects that was measured on this trace costs 0.64 of sending everything.
func TestFrugalPolicyBeatsPeersOnTheSyntheticTrace(t *testing.T) {
	for name, tokens := range traceWindows {
		t.Run(name, func(t *testing.T) {
			f, cost := traceFigures(t, tokens)
			if cost >= 0.64 {
				t.Errorf("cost is %.3f of sending everything, want less than 0.64", cost)
			}
			if f.Changes > 6 {
				t.Errorf("the prefix changed %d times, want at most 6", f.Changes)
			}
			if f.Visible != f.Calls {
				t.Errorf("%d of %d calls were visible", f.Visible, f.Calls)
			}
			if f.Over+f.Refused > 0 {
				t.Errorf("%d steps over budget and %d refused", f.Over, f.Refused)
			}
		})
	}
}

func BenchmarkSyntheticTrace(b *testing.B) {
	for name, tokens := range traceWindows {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f, cost := traceFigures(b, tokens)
				b.ReportMetric(cost, "cost/everything")
				b.ReportMetric(float64(f.Changes), "prefix-changes")
			}
		})
	}
}
