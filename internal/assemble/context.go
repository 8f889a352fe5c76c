package assemble

import (
	"context"

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
	// *records.KeyConflictError. Empty where there is no key.
	Digest []byte
	// Wait, if not nil, is called with the summary that the budget cuts the context
	// without, before it is cut. Other assemblies of the session go on meanwhile.
	Wait func(context.Context, summarize.Proposal)
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
