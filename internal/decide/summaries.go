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
	// Fresh is the event after which the proposed span holds enough to ask about it once
	// more: a veto of a span that ends after it still holds.
	Fresh eventlog.Seq
	// Policy is the projection policy.
	Policy   string
	Messages int
	Tokens   uint64
	// Goal is what a forced cut would leave, in tokens.
	Goal          uint64
	KeepLastTurns uint32
}

// SummaryPolicy says how summaries are made. When they are, reduce.Collapse says.
type SummaryPolicy struct {
	// Summarizer is a name of the configuration; empty is its default.
	Summarizer   string
	Instructions prompt.Instructions
	// MaxInputTokens is the most that a summarizer is given at once; 0 is its own limit.
	MaxInputTokens uint64
	// Wait is how long an assembly over budget may wait for a summary.
	Wait time.Duration
}

// Due is the summary that a context was cut without; nil if it was not cut, or none is
// worth making.
func (in Inputs) Due(p Projected) *summarize.Proposal {
	if p.Through() == p.Result.Start.State.CollapsedThrough {
		return nil
	}
	return in.proposal(*p.Result.Start)
}

// proposal is the summary that is worth making of what is shown; nil if none is.
func (in Inputs) proposal(now reduce.Result) *summarize.Proposal {
	in.Before = now.State
	pipeline, ask := in.pipeline()
	span, ok := pipeline.Propose(in.Budget, now, ask)
	if !ok {
		return nil
	}
	return in.propose(pipeline, span, "threshold", pipeline.SummaryTokens(in.Budget))
}

// Ahead is the summary that is worth making after a projection, before the next cut, and how
// full the context is; nil if none is.
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

// propose is a proposal for a text that takes so many tokens as it is quoted.
func (in Inputs) propose(pipeline *reduce.Pipeline, span reduce.Span, trigger string, tokens uint64) *summarize.Proposal {
	of, sized := in.Summarizing, tokens < pipeline.SummaryTokens(in.Budget)
	tokens -= tokens / 6 // for the quotation marks
	return &summarize.Proposal{
		SessionID: in.SessionID, Of: in.Of, From: span.From, To: span.To, Extends: span.Extends,
		Summarizer: of.Summarizer, Instructions: of.Instructions, MaxInputTokens: of.MaxInputTokens,
		MaxOutputTokens: tokens, Sized: sized, Tokenizer: in.Conversation.Gauge().Tokenizer(), Trigger: trigger,
	}
}
