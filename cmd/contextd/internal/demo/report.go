package demo

// Turn is what one model call would have been sent.
type Turn struct {
	Turn    int    `json:"turn"`
	AsOfSeq uint64 `json:"as_of_seq"`
	// User is what the user said since the turn before; empty if nothing.
	User string `json:"user,omitempty"`

	State           string `json:"state"`
	TargetTokens    uint64 `json:"target_tokens"`
	RawTokens       uint64 `json:"raw_tokens"`
	ProjectedTokens uint64 `json:"projected_tokens"`

	Messages int `json:"messages"`
	// SentMessages came over the wire; the client held the others.
	SentMessages int `json:"sent_messages"`

	// FreedTokens is what this turn took out of the context.
	FreedTokens uint64 `json:"freed_tokens,omitempty"`
	// Evicted counts the bodies that this turn replaced, by reducer.
	Evicted map[string]int `json:"evicted,omitempty"`
	// Collapsed counts the events that this turn moved to the ledger.
	Collapsed int `json:"collapsed_events,omitempty"`
	// Summary is the id of the summary that replaces them from this turn on; empty
	// if it is the one before, or none.
	Summary string `json:"summary,omitempty"`
	// SummaryReady is the last event of the summary that was written during this turn's
	// model call; 0 if none was.
	SummaryReady uint64 `json:"summary_ready_through_seq,omitempty"`
	// Reason is why something was dropped now; empty if nothing was that had been sent.
	Reason Reason `json:"reason,omitempty"`

	// StableTokens and StableMessages are as they were in the turn before.
	StableTokens   uint64 `json:"stable_tokens"`
	StableMessages int    `json:"stable_messages"`
	// StableShare is how much of the request before is a prefix of this one.
	StableShare float64 `json:"stable_share"`
	// ChangedBy is the reducer that rewrote the prefix; empty if it is unchanged.
	ChangedBy string `json:"changed_by,omitempty"`

	Calls        int     `json:"calls"`
	VisibleCalls int     `json:"visible_calls"`
	PrefixHash   string  `json:"prefix_hash"`
	HashOK       bool    `json:"hash_ok"`
	Cost         float64 `json:"cost"`
	CostAll      float64 `json:"cost_everything"`
}

// Reason is why a turn reduced what an earlier one had sent.
type Reason string

// The reasons.
const (
	// Full: without it the context would have been over its target.
	Full Reason = "full"
	// Cold: the provider's cache had expired, so that a rewrite cost nothing more.
	Cold Reason = "cold"
	// Batch: enough had gathered to be worth a rewrite.
	Batch Reason = "batch"
)

// Totals are the sums over a session, and what was checked.
type Totals struct {
	Turns        int    `json:"turns"`
	Messages     int    `json:"messages"`
	SentMessages int    `json:"sent_messages"`
	TargetTokens uint64 `json:"target_tokens"`

	Tokens     uint64  `json:"tokens"`
	TokensAll  uint64  `json:"tokens_everything"`
	Largest    uint64  `json:"largest_tokens"`
	LargestAll uint64  `json:"largest_tokens_everything"`
	Cost       float64 `json:"cost"`
	CostAll    float64 `json:"cost_everything"`
	CostRatio  float64 `json:"cost_ratio"`
	// OverFrom is the first turn at which everything no longer fits; 0 if it does.
	OverFrom int `json:"everything_over_from_turn,omitempty"`

	// Summaries were made in the background; Quoted of them were used in a context.
	Summaries int `json:"summaries"`
	Quoted    int `json:"summaries_quoted"`

	PrefixChanges int            `json:"prefix_changes"`
	Causes        map[string]int `json:"prefix_change_causes"`

	Calls        int `json:"calls"`
	VisibleCalls int `json:"visible_calls"`
	HashesOK     int `json:"hashes_ok"`
	OverTarget   int `json:"over_target"`
	Orphans      int `json:"orphans"`
	// Replayed counts the recorded projections that the daemon rebuilt with the
	// same bytes; Resolved the pointers that gave back what was appended.
	Replayed int `json:"replayed_same"`
	Pointers int `json:"pointers"`
	Resolved int `json:"pointers_resolved"`

	// Problems are the checks that failed.
	Problems []string `json:"problems,omitempty"`
}

// add sums a turn up.
func (t *Totals) add(turn *Turn) {
	t.Turns++
	t.Messages += turn.Messages
	t.SentMessages += turn.SentMessages
	t.TargetTokens = turn.TargetTokens
	t.Tokens += turn.ProjectedTokens
	t.TokensAll += turn.RawTokens
	t.Largest = max(t.Largest, turn.ProjectedTokens)
	t.LargestAll = max(t.LargestAll, turn.RawTokens)
	t.Cost += turn.Cost
	t.CostAll += turn.CostAll
	t.CostRatio = t.Cost / t.CostAll
	if t.OverFrom == 0 && turn.RawTokens > turn.TargetTokens {
		t.OverFrom = turn.Turn
	}
	if turn.SummaryReady > 0 {
		t.Summaries++
	}
	if turn.Summary != "" {
		t.Quoted++
	}
	if turn.ChangedBy != "" {
		t.PrefixChanges++
		if t.Causes == nil {
			t.Causes = map[string]int{}
		}
		t.Causes[turn.ChangedBy]++
	}
	t.Calls, t.VisibleCalls = turn.Calls, turn.VisibleCalls
	if turn.HashOK {
		t.HashesOK++
	}
}

// What a byte of the prompt costs, relative to the plain price of input: read
// from the provider's cache, and written to it. A model of provider prices, not
// a bill: what a provider charges is tokens, and its cache expires.
const (
	cachedPrice = 0.1
	freshPrice  = 1.25
)

// price is what a request costs after the one before it.
func (r *received) price() float64 {
	return cachedPrice*float64(r.common) + freshPrice*float64(r.bytes-r.common)
}
