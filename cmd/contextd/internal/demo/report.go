package demo

// Turn is what one model call would have been sent.
type Turn struct {
	Turn    int    `json:"turn"`
	AsOfSeq uint64 `json:"as_of_seq"`
	// User is what the user said since the last turn; empty if nothing.
	User string `json:"user,omitempty"`

	State           string `json:"state"`
	TargetTokens    uint64 `json:"target_tokens"`
	RawTokens       uint64 `json:"raw_tokens"`
	ProjectedTokens uint64 `json:"projected_tokens"`

	Messages int `json:"messages"`
	// SentMessages is how many messages the daemon sent; the client held the others.
	SentMessages int `json:"sent_messages"`

	// FreedTokens is how many tokens this turn removed from the context.
	FreedTokens uint64 `json:"freed_tokens,omitempty"`
	// Evicted counts the bodies that this turn evicted, by reducer.
	Evicted map[string]int `json:"evicted,omitempty"`
	// Collapsed counts the events that this turn collapsed into the digest.
	Collapsed int `json:"collapsed_events,omitempty"`
	// Summary is the id of a summary that appears in the digest for the first time; empty if none does.
	Summary string `json:"summary,omitempty"`
	// SummaryReady is the last event that a summary covers which became ready during this turn's model call;
	// 0 if none did.
	SummaryReady uint64 `json:"summary_ready_through_seq,omitempty"`
	// Reason is why this turn reduced; empty if nothing was removed that had been sent before.
	Reason Reason `json:"reason,omitempty"`

	// StableTokens and StableMessages are the size of the prefix that is unchanged since the last turn.
	StableTokens   uint64 `json:"stable_tokens"`
	StableMessages int    `json:"stable_messages"`
	// StableShare is the share of the last request that is a prefix of this one.
	StableShare float64 `json:"stable_share"`
	// ChangedBy is the reducer that changed the prefix; empty if none did.
	ChangedBy string `json:"changed_by,omitempty"`

	Calls        int     `json:"calls"`
	VisibleCalls int     `json:"visible_calls"`
	PrefixHash   string  `json:"prefix_hash"`
	HashOK       bool    `json:"hash_ok"`
	Cost         float64 `json:"cost"`
	CostAll      float64 `json:"cost_everything"`
}

// Reason is why a turn removed what had been sent before.
type Reason string

// The reasons.
const (
	// Full: otherwise the context would have exceeded its target.
	Full Reason = "full"
	// Cold: the provider's cache had expired, so a rewrite cost nothing extra.
	Cold Reason = "cold"
	// Batch: enough had become due to be worth a rewrite.
	Batch Reason = "batch"
)

// Totals are the sums over a session, and the results of the checks.
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
	// OverFrom is the first turn at which the whole log no longer fits the target; 0 if it always fits.
	OverFrom int `json:"everything_over_from_turn,omitempty"`

	// Summaries were written in the background; Quoted is how many of them appeared in a context.
	Summaries int `json:"summaries"`
	Quoted    int `json:"summaries_quoted"`

	PrefixChanges int            `json:"prefix_changes"`
	Causes        map[string]int `json:"prefix_change_causes"`

	Calls        int `json:"calls"`
	VisibleCalls int `json:"visible_calls"`
	HashesOK     int `json:"hashes_ok"`
	OverTarget   int `json:"over_target"`
	Orphans      int `json:"orphans"`
	// Replayed counts the recorded projections that were rebuilt byte for byte. Resolved is how many of the
	// Pointers gave the body that was appended.
	Replayed int `json:"replayed_same"`
	Pointers int `json:"pointers"`
	Resolved int `json:"pointers_resolved"`

	// Problems are the checks that failed.
	Problems []string `json:"problems,omitempty"`
}

// add adds a turn.
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

// What a byte of the prompt costs relative to the plain input price: read from the provider's cache, and
// written to it. It is a model of prices, not a bill: providers charge for tokens, and their caches expire.
const (
	cachedPrice = 0.1
	freshPrice  = 1.25
)

// price is the cost of a request, given what it shares with the last one.
func (r *received) price() float64 {
	return cachedPrice*float64(r.common) + freshPrice*float64(r.bytes-r.common)
}
