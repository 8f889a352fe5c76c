package reducetest

import "github.com/contextd/contextd/internal/budget"

// Gauge counts a token for every four bytes, so that sizes can be checked by eye and
// counting costs nothing.
var Gauge = budget.NewGauge(quarter{})

type quarter struct{}

func (quarter) Name() string { return "quarter" }

func (quarter) Count(text string) budget.Count { return budget.Count{Tokens: (len(text) + 3) / 4} }

func (quarter) Cost(text string) uint64 { return uint64(len(text)) }

func (quarter) PerToken() uint64 { return 4 }
