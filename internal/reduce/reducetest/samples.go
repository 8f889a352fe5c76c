package reducetest

import (
	"time"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

// Policy has every reducer at work on short sessions. It stays the same whatever the measured
// defaults are, so that tests of what reducers do need not follow these.
func Policy() reduce.Policy {
	keepThinking := uint32(8)
	return reduce.Policy{
		ToolResults: reduce.ToolResults{Default: reduce.Retention{Turns: 4, MinTokens: 600}, OutlineTokens: 400},
		Duplicates:  true,
		Clipping:    reduce.Clipping{MaxTokens: 12_000},
		Thinking:    reduce.Thinking{KeepTurns: &keepThinking},
		Collapse: reduce.Collapse{
			To: 0.2, CutFrom: 0.6, CutPaybackTurns: 10, KeepLastTurns: 2,
			LedgerShare: 0.08, IndexShare: 0.12, SummaryShare: 0.04, StartAt: 0.5,
		},
		Cache: reduce.Cache{EvictEveryTurns: 10, ClearAtLeastTokens: 24_000, TTL: 5 * time.Minute, PaybackTurns: 4},
	}
}

// Labels are what generated messages of users and of the system are labelled with: most are
// a human's, others a notification, or a standing text, until it comes again.
var Labels = []map[string]string{
	nil, nil, nil, {"stage": "explore"},
	{eventlog.LabelInjected: "true"}, {eventlog.LabelInjected: "true"},
	{eventlog.LabelInjected: "true", eventlog.LabelStanding: "AGENTS.md"},
	{eventlog.LabelInjected: "true", eventlog.LabelStanding: "environment"},
}

// Gauge counts a token for every four bytes, so that sizes can be checked by eye and
// counting costs nothing.
var Gauge = budget.NewGauge(quarter{})

type quarter struct{}

func (quarter) Name() string { return "quarter" }

func (quarter) Count(text string) budget.Count { return budget.Count{Tokens: (len(text) + 3) / 4} }

func (quarter) Cost(text string) uint64 { return uint64(len(text)) }

func (quarter) PerToken() uint64 { return 4 }
