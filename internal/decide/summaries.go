package decide

import (
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/summarize"
	"github.com/contextd/contextd/internal/summarize/prompt"
)

// Pressure is how full a context was when a summary was proposed.
type Pressure struct {
	// Fresh says how long a veto holds. If the vetoed span ends after this event, the veto still holds. If it ends
	// earlier, the proposal covers enough new events to ask again.
	Fresh eventlog.Seq
	// Policy is the projection policy.
	Policy   string
	Messages int
	Tokens   uint64
	// Goal is the size, in tokens, at which a forced cut aims.
	Goal          uint64
	KeepLastTurns uint32
}

// SummaryPolicy says how summaries are made. reduce.Collapse says when.
type SummaryPolicy struct {
	// Summarizer is the configured name of a summarizer; empty is the default one.
	Summarizer   string
	Instructions prompt.Instructions
	// MaxInputTokens is the most tokens that a summarizer gets in one request; 0 is its own limit.
	MaxInputTokens uint64
	// Wait is how long an assembly over budget may wait for a summary.
	Wait time.Duration
}

// Due proposes the summary for which a cut should have waited; nil if the context was not cut, or no
// summary is worth making.
func (in Inputs) Due(p Projected) *summarize.Proposal {
	if p.Through() == p.Result.Start.State.CollapsedThrough {
		return nil
	}
	return in.proposal(*p.Result.Start)
}

// proposal proposes the summary that is worth making of a view; nil if none is.
func (in Inputs) proposal(now reduce.Result) *summarize.Proposal {
	in.Before = now.State
	pipeline, ask := in.pipeline()
	span, ok := pipeline.Propose(in.Budget, now, ask)
	if !ok {
		return nil
	}
	return in.propose(pipeline, span, "threshold", pipeline.SummaryTokens(in.Budget))
}

// Ahead proposes the summary that is worth making after a projection, before the next cut, and says how
// full the context is; nil if none is worth making.
func (in Inputs) Ahead(p Projected) (*summarize.Proposal, Pressure) {
	next := in.proposal(reduce.Result{View: p.Reduced, State: p.Result.State})
	if next == nil {
		return nil, Pressure{}
	}
	pipeline, _ := in.pipeline()
	return next, Pressure{
		Fresh: pipeline.FreshAfter(in.Budget, next.To), Policy: in.Projection.PolicyName(), Messages: p.Messages(), Tokens: p.Tokens(),
		Goal: in.Budget.Share(in.Reduction.Collapse.To), KeepLastTurns: in.Reduction.Collapse.KeepLastTurns,
	}
}

// propose makes a proposal for a summary that takes at most tokens in the digest that quotes it.
func (in Inputs) propose(pipeline *reduce.Pipeline, span reduce.Span, trigger string, tokens uint64) *summarize.Proposal {
	of, sized := in.Summarizing, tokens < pipeline.SummaryTokens(in.Budget)
	tokens -= tokens / 6 // for the quotation marks
	return &summarize.Proposal{
		SessionID: in.SessionID, Of: in.Of, From: span.From, To: span.To, Extends: span.Extends,
		Summarizer: of.Summarizer, Instructions: of.Instructions, MaxInputTokens: of.MaxInputTokens,
		MaxOutputTokens: tokens, Sized: sized, Tokenizer: in.Conversation.Gauge().Tokenizer(), Trigger: trigger,
	}
}
