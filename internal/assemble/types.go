package assemble

import (
	"context"
	"fmt"
	"time"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/decide"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/pointers"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/render"
	"github.com/contextd/contextd/internal/summarize"
)

// Request asks for the rendered context of a session.
type Request struct {
	SessionID string
	// AsOf renders the log as it was at this event; nil is the head.
	AsOf       *eventlog.Seq
	Budget     budget.Spec
	Policy     Policy
	Injections []render.Injection
	Have       Have
	// Preview records nothing.
	Preview        bool
	IdempotencyKey string
	// Digest identifies what is asked for: a key that was used with another is a
	// *KeyConflictError. Empty where there is no key.
	Digest []byte
	// Wait, if not nil, is called with the summary that the budget cuts the context
	// without, before it is cut. Other assemblies of the session go on meanwhile.
	Wait func(context.Context, summarize.Proposal)
	// ask is what a compaction asks for.
	ask reduce.Ask
	// shadow is what the context is computed for; nil for one that somebody gets.
	shadow *Shadow
}

// Policy is everything a request decides by.
type Policy struct {
	Reduction reduce.Policy
	Summaries decide.SummaryPolicy
	// Projection is the policy that is applied to the reduced view.
	Projection projection.Options
	// Reason is the caller's own, for the record.
	Reason string
}

// ReductionFor is the policy of reduction for a model. A summary of what a harness had compacted
// would replace more than it had read, so none is made under harness_view. Under full only
// what compactions go by counts. Where rewrites may pay, they do at the model's prices, unless
// the policy has its own.
func (p Policy) ReductionFor(model budget.Model) reduce.Policy {
	r := p.Reduction
	if (r.Cache != reduce.Cache{}) && r.Cache.Prices == (reduce.Prices{}) {
		r.Cache.Prices = reduce.PricesOf(model.Prices)
	}
	switch p.Projection.Name {
	case projection.HarnessView:
		r.Collapse.StartAt = 0
	case projection.Full:
		r = reduce.Policy{Whole: true, ToolResults: r.ToolResults, Collapse: r.Collapse, Recall: r.Recall}
	}
	return r
}

// Have is what the caller holds of the prefix already.
type Have struct {
	MessageCount int
	PrefixHash   string
}

// Message is a rendered message and its canonical bytes.
type Message = render.Encoded

// Context is the answer: the header's facts and the messages the caller lacks.
type Context struct {
	SessionID string
	// Of is the incarnation of the session; 0 where it has none.
	Of          eventlog.Incarnation
	AsOf        eventlog.Seq
	PrefixHash  string
	ContextHash string
	// MessageCount counts the whole context, injections included; Skipped of them
	// the caller has.
	MessageCount int
	Skipped      int
	// PrefixMessages leading messages have the same bytes without the injections.
	PrefixMessages int
	// Broken says why not all that the caller has was skipped; nil if all was, or it has
	// nothing.
	Broken   *Break
	Messages []Message
	// Breakpoints are where the provider's cache should be marked, if it has marks.
	Breakpoints []Breakpoint
	// PromptCacheKey is the same for all requests of a session; empty where the
	// provider takes none.
	PromptCacheKey string
	Projection     records.Projection
	// Pointers are the record's, completed from the log.
	Pointers []pointers.Facts
	Budget   BudgetReport
	Cache    CacheReport
	// What a context that was recorded leads to. Proposed is the span that is worth a
	// summary before the next cut, under Pressure; nil if none is. Collapsed is what the
	// budget forced out; nil if nothing left.
	Proposed  *summarize.Proposal
	Pressure  decide.Pressure
	Collapsed *decide.Collapsed
}

// BudgetReport says how the budget was used, in tokens as the provider is expected to
// count them: the gauge's times Calibration.
type BudgetReport struct {
	Calibration float64
	State       budget.State
	Target      uint64
	Raw         uint64 // the whole log, unreduced
	Projected   uint64
	Tiers       map[budget.Tier]uint64
	Tokenizer   string
}

// CacheReport compares with the projection recorded before.
type CacheReport struct {
	StableMessages int
	StableTokens   uint64
	// BrokenBy is the reducer that rewrote the first differing message, "log" if a
	// late result did; empty if the old prefix is unchanged.
	BrokenBy string
}

// Breakpoint is a place for a mark of the provider's cache.
type Breakpoint struct {
	// Message is the index in the whole context.
	Message int
	// Item is that of its content where what follows will not be there next time; nil is
	// the last.
	Item *int
}

// Break is where what the caller has is no prefix of the context any more.
type Break struct {
	// Index is the first message that differs.
	Index int
	// Cause is what rewrote it, as in CacheReport.BrokenBy; CauseUnknown if the daemon
	// does not know what the caller has.
	Cause string
}

// CauseUnknown is the cause of a break where no recorded projection begins with what
// the caller says that it has.
const CauseUnknown = "unknown"

// Reason says the cause in a sentence.
func (b *Break) Reason() string {
	switch b.Cause {
	case CauseUnknown:
		return "no recorded projection in this format begins with these messages; everything is sent"
	case causeReminders:
		return fmt.Sprintf("a reminder after message %d was replaced by what was said since", b.Index)
	case causeInjections:
		return fmt.Sprintf("an injection after message %d was replaced by what was said since", b.Index)
	case causeLog:
		return fmt.Sprintf("an event changed message %d, such as a late result", b.Index)
	default:
		return fmt.Sprintf("%s rewrote message %d", b.Cause, b.Index)
	}
}

// Replay is a recorded projection and the same computed again.
type Replay struct {
	Same               bool
	Recorded, Replayed records.Projection
	// Messages are those that Replayed describes; injections are not recorded.
	Messages   []Message
	Difference string
}

// Clock gives the time for records; nothing that is rendered depends on it.
type Clock func() time.Time
