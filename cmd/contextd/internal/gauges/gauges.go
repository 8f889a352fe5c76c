// Package gauges opens the gauge of each tokenizer that budgets name.
package gauges

import (
	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/budget/bpe"
)

// Open returns the gauge of a tokenizer. The first call for one with a
// vocabulary takes some hundredths of a second; later ones are cheap. The error of
// an unknown name says which there are.
func Open(tokenizer string) (budget.Gauge, error) {
	if tokenizer == budget.TokenizerHeuristic {
		return budget.NewGauge(budget.Heuristic{}), nil
	}
	encoding, err := bpe.Open(tokenizer)
	if err != nil {
		return budget.Gauge{}, err
	}
	return budget.NewGauge(encoding), nil
}
