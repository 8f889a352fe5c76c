package reduce

import "time"

// The built-in policies are good trade-offs, by measurement, between cost and what the agent can still do.
// docs/defaults.md has the reasons and the measurements.

// DefaultPolicy returns the policy of a session that names none.
func DefaultPolicy() Policy {
	keepThinking := uint32(8)
	return Policy{
		ToolResults: ToolResults{
			Default:       Retention{Turns: 30, MinTokens: 600},
			OutlineTokens: 300,
		},
		Duplicates: true,
		Clipping:   Clipping{MaxTokens: 12_000, Share: 0.085, NameTokens: 150},
		Thinking:   Thinking{KeepTurns: &keepThinking},
		Collapse: Collapse{
			To:              0.45,
			CutFrom:         0.65,
			CutReach:        1,
			CutFromTokens:   48_000,
			CutTo:           0.2,
			CutPaybackTurns: 10,
			KeepLastTurns:   2,
			LedgerShare:     0.025,
			WorkingSetShare: 0.21,
			IndexShare:      0.105,
			ListTokens:      9_000,
			IndexTokens:     6_000,
			IndexLines:      0.5,
			SummaryShare:    0.03,
			StartAt:         0.5,
		},
		Cache: Cache{
			EvictEveryTurns:    10,
			ClearAtLeastTokens: 24_000,
			TTL:                5 * time.Minute,
			PaybackTurns:       4,
		},
	}
}

// FrugalPolicy cuts as soon as that pays, and deep.
func FrugalPolicy() Policy {
	p := DefaultPolicy()
	p.ToolResults.Default.Turns, p.ToolResults.OutlineTokens, p.Clipping.Share = 4, 100, 0.07
	c := &p.Collapse
	c.To, c.CutFrom, c.CutFromTokens, c.CutTo, c.CutReach = 0.2, 0.6, 0, 0.2, 0
	c.LedgerShare, c.WorkingSetShare, c.IndexShare, c.ListTokens = 0.02, 0.08, 0.10, 6_000
	return p
}

// FaithfulPolicy keeps more of each result, of turns and of files in work, and waits longer for
// agents that reach back.
func FaithfulPolicy() Policy {
	p := DefaultPolicy()
	p.Clipping.Share = 0.15
	c := &p.Collapse
	c.To, c.CutReach, c.KeepLastTurns, c.WorkingSetShare = 0.6, 0.3, 3, 0.25
	return p
}
