package reducetest

import (
	"time"

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
