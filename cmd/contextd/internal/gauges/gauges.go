// Package gauges opens gauges by the name of their tokenizer.
package gauges

import (
	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/budget/bpe"
)

// Open returns the gauge of a tokenizer. The first call for a tokenizer with a vocabulary takes some
// hundredths of a second; later calls are cheap. The error for an unknown name lists the known ones.
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
