// Package records keeps next to a log what was decided of its contexts and what was reported
// of the model calls that they went to, so that both can be explained, and a context computed
// again. It finds the record that a question is about without going through all of them.
package records

import (
	"time"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/reduce"
)

// Projection is the record of a projection as it was decided: enough to say what the model saw, and
// to compute it again from the log.
type Projection struct {
	ID     string
	Policy string
	Reason string
	// Fingerprint identifies policy, window and tokenizer: decisions stick while
	// it stays the same.
	Fingerprint string
	PrefixHash  string
	AsOf        eventlog.Seq
	Time        time.Time
	// IdempotencyKey is the request's, if it had one.
	IdempotencyKey string
	// RequestDigest identifies what a request with a key asked for; empty if it had none.
	RequestDigest []byte

	Kept, Dropped, Redacted eventlog.Ranges
	Pointers                Pointers
	ReclaimedTokens         int64
	ReclaimedChars          int64
	Steps                   []reduce.Step

	// Before is the state the pipeline started from and After the one it ended
	// with. Before, Reduction, Budget, Ask and Summaries with the log and its artifacts
	// give the projection again.
	Before, After reduce.State
	Reduction     reduce.Policy
	Budget        budget.Budget
	// Ask is what was asked for beside the budget, and Summaries are the ids of those
	// that could be quoted, oldest first.
	Ask       reduce.Ask
	Summaries []string
	// Projection is the policy that was applied to the reduced view, ShownBefore the
	// state it started from and ShownAfter the one it ended with.
	Projection              projection.Options
	ShownBefore, ShownAfter projection.State
	// RootsConsulted, SafetyBlocked and Reverted are what the policy reported; see projection.Applied.
	RootsConsulted []string
	SafetyBlocked  bool
	Reverted       string
	// Texts names the caller's texts, of a record that was read from the store: LoadTexts
	// puts them into Projection. Empty if there are none.
	Texts string
	// SummaryVersion is the version of the rules of After.Summary; 0 if that is empty.
	SummaryVersion uint32
	// Previous is the record that the context was compared with: the newest of the stream
	// that was not after it. Empty if there was none, or a build before this was kept made it.
	Previous string
	// MessageCount is how many messages PrefixHash covers.
	MessageCount int
	Tokens       uint64
	// Raw is the size of the whole log, in tokens, and Tiers are those of the context, as the
	// gauge counted them; 0 and nil in a record of a build before these were kept.
	Raw   uint64
	Tiers map[budget.Tier]uint64
	// Shared is what the context shares with Previous; nil where that is not known.
	Shared *Shared
	// Injected is the size of the injections beside them, in tokens. Where there are any,
	// ContextHash covers the ContextMessages of the whole context, of which the first
	// PrefixMessages have the same bytes without them; else these are empty.
	Injected                        uint64
	ContextHash                     string
	ContextMessages, PrefixMessages int
	// RemindersTurns and RemindersCollapsed are the turn and the dropped event up to which
	// the session's watchers know what became of its reminders.
	RemindersTurns     uint32
	RemindersCollapsed eventlog.Seq
}

// Shared is what a context shares with another.
type Shared struct {
	// Messages are the leading ones with the same bytes, and Tokens their size.
	Messages int
	Tokens   uint64
	// BrokenBy is the reducer that rewrote the first message that differs; empty if none did.
	BrokenBy string
}

// Stream names what has a prefix of its own in a provider's cache: the decisions of a
// fingerprint in one format.
func (r Projection) Stream() string { return r.Fingerprint + "/" + r.Budget.Format }

// Pointers are the blocks that are not rendered as the log has them, in order.
type Pointers []Pointer

// Pointer says that a block is not rendered as the log has it. What else there is to say
// of it is in the log.
type Pointer struct {
	Seq       eventlog.Seq
	Block     int
	Kind      reduce.EditKind
	Reducer   string
	Reason    string
	Reclaimed uint64 // tokens
}
