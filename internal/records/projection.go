// Package records stores, next to a log, how its contexts were decided and which model calls were reported, so that
// both can be explained and a context can be computed again. Index entries find a record without a search through all
// records.
package records

import (
	"cmp"
	"time"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/reduce"
)

// Projection is the record of a context: enough to say what the model saw, and to compute the context again
// from the log.
type Projection struct {
	ID     string
	Policy string
	Reason string
	// Fingerprint identifies policy, window and tokenizer: decisions hold while it stays the same.
	Fingerprint string
	PrefixHash  string
	AsOf        eventlog.Seq
	Time        time.Time
	// IdempotencyKey is the request's; empty if it had none.
	IdempotencyKey string
	// RequestDigest is the hash of the request, if it had an idempotency key; else empty.
	RequestDigest []byte

	Kept, Dropped, Redacted eventlog.Ranges
	Pointers                Pointers
	ReclaimedTokens         int64
	ReclaimedChars          int64
	Steps                   []reduce.Step

	// Before is the state from which the pipeline started, After the one with which it ended. The projection can be
	// computed again from Before, Reduction, Budget, Ask and Summaries with the log and its artifacts.
	Before, After reduce.State
	Reduction     reduce.Policy
	Budget        budget.Budget
	// Ask is what the request demanded in addition to the budget. Summaries are the ids of the summaries that could
	// be quoted, oldest first.
	Ask       reduce.Ask
	Summaries []string
	// Projection is the policy that was applied to the reduced view, ShownBefore the state from which it started, and
	// ShownAfter the one with which it ended.
	Projection              projection.Options
	ShownBefore, ShownAfter projection.State
	// RootsConsulted, SafetyBlocked and Reverted are what the policy reported; see projection.Applied.
	RootsConsulted []string
	SafetyBlocked  bool
	Reverted       string
	// Texts is the hash under which the caller's texts are stored; empty if there are none. It is set only in a
	// record that was read from the store. LoadTexts reads the texts into Projection.
	Texts string
	// SummaryVersion is the version of the rules of After.Summary; 0 if that is empty.
	SummaryVersion uint32
	// Previous is the record with which the context was compared: the newest of its stream at AsOf or before. It is
	// empty if there was none, and in records of early builds.
	Previous string
	// MessageCount is how many messages PrefixHash covers.
	MessageCount int
	Tokens       uint64
	// Raw is the size of the whole log, and Tiers the size of the context by tier, in tokens of the gauge; 0 and nil
	// in records of early builds.
	Raw   uint64
	Tiers map[budget.Tier]uint64
	// Shared is the prefix that the context shares with Previous; nil if unknown.
	Shared *Shared
	// Injected is the size of the injections after the context, in tokens; Tokens does not include it. If
	// there are any, ContextHash covers all ContextMessages messages of context and injections; the first
	// PrefixMessages have the same bytes without them. Otherwise these fields are empty.
	Injected                        uint64
	ContextHash                     string
	ContextMessages, PrefixMessages int
	// RemindersTurns and RemindersCollapsed are the turn and the collapsed event up to which the session's
	// watchers were informed of what became of reminders.
	RemindersTurns     uint32
	RemindersCollapsed eventlog.Seq
}

// Shared is the prefix that a context shares with an earlier one.
type Shared struct {
	// Messages counts the leading messages with the same bytes, and Tokens is their size.
	Messages int
	Tokens   uint64
	// BrokenBy is what rewrote the first message that differs; empty if nothing did.
	BrokenBy string
}

// Stream returns the key of a stream: contexts under one fingerprint in one format, which share a prefix in a
// provider's cache.
func (r Projection) Stream() string { return r.Fingerprint + "/" + r.Budget.Format }

// Pointers are the edited blocks of a context, in order.
type Pointers []Pointer

// Pointer says that an edit changed or replaced a block. Other facts about the block are in the log.
type Pointer struct {
	Seq       eventlog.Seq
	Block     int
	Kind      reduce.EditKind
	Reducer   string
	Reason    string
	Reclaimed uint64 // tokens
}

// Shows returns the hash of all messages of the context, injections included.
func (r Projection) Shows() string { return cmp.Or(r.ContextHash, r.PrefixHash) }
