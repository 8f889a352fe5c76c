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
	// AsOf renders the log as of this event; nil is the head.
	AsOf       *eventlog.Seq
	Budget     budget.Spec
	Policy     Policy
	Injections []render.Injection
	Have       Have
	// Preview records nothing.
	Preview        bool
	IdempotencyKey string
	// Digest is a hash of the request: a key that was used with another digest is a *records.KeyConflictError. It is
	// empty if there is no key.
	Digest []byte
	// Wait, if not nil, is called before the budget forces a cut for which a summary is worth making. Its argument is
	// the proposal of that summary. When it returns, the assembly begins again. The session is not acquired while it
	// runs.
	Wait func(context.Context, summarize.Proposal)
	// shadow is set if the context is computed for a shadow record; nil if a caller gets the context.
	shadow *Shadow
}

// Policy is all that a request says about how its context is decided.
type Policy struct {
	Reduction reduce.Policy
	Summaries decide.SummaryPolicy
	// Projection is the policy that is applied to the reduced view.
	Projection projection.Options
	// Reason is the caller's reason, for the record.
	Reason string
}

// ReductionFor returns the policy of reduction for a model. Under harness_view no collapse is forced: a summary of a
// log that its harness had compacted would replace more than it had read. Under full only the settings that
// compactions use count. Whether a rewrite pays is computed with the model's prices unless the policy has prices. Reasoning
// that the model's API wants back stays, whatever its age.
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
	if model.ReturnReasoning {
		r.Thinking = reduce.Thinking{Return: true}
	}
	return r
}

// Message is a rendered message and its canonical bytes.
type Message = render.Encoded

// Context is the answer to a Request: facts about the whole context, and the messages that the caller does not have.
type Context struct {
	SessionID string
	// Of is the incarnation of the session; 0 if there is no session.
	Of          eventlog.Incarnation
	AsOf        eventlog.Seq
	PrefixHash  string
	ContextHash string
	// MessageCount counts the whole context, including injections. Skipped is how many of the first messages the
	// caller has already; they are not in Messages.
	MessageCount int
	Skipped      int
	// PrefixMessages is how many of the first messages have the same bytes with and without the injections.
	PrefixMessages int
	// Broken says where and why the caller's messages stop being a prefix; nil if they are a prefix, or if the caller
	// has none.
	Broken   *Break
	Messages []Message
	// Breakpoints are where the provider's cache should be marked, if it has marks.
	Breakpoints []Breakpoint
	// PromptCacheKey is the same for all requests of a session; empty if the provider takes none.
	PromptCacheKey string
	Projection     records.Projection
	// Pointers are those of Projection, completed with facts from the log.
	Pointers []pointers.Facts
	Budget   BudgetReport
	Cache    CacheReport
	// The rest is set for recorded contexts only. Proposed is the summary that is worth making before the next cut,
	// and Pressure how full the context is; nil if none is worth making. Collapsed says what the budget forced out;
	// nil if it forced nothing.
	Proposed  *summarize.Proposal
	Pressure  decide.Pressure
	Collapsed *decide.Collapsed
}
