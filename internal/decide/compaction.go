package decide

import (
	"cmp"
	"fmt"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/summarize"
)

// Plan is what a compaction would do.
type Plan struct {
	// Policy is the projection policy by which the context is measured.
	Policy string
	// Nothing says why there is nothing to do; empty if there is something. If nothing can be done, Short
	// says by how much the target is missed.
	Nothing string
	Short   Shortfall
	Before  Size
	// Strategy, KeepLastTurns and TargetTokens are the request's, with defaults for what it did not set.
	Strategy      reduce.Strategy
	KeepLastTurns uint32
	TargetTokens  uint64
	// Summary is the proposal of a summary that must be made before Compact; nil if none must.
	Summary *summarize.Proposal
}

// Shortfall says by how many tokens a context exceeds a compaction's target, and which parts of it remain, the
// largest first. It is zero if the target is reached.
type Shortfall struct {
	Over     uint64
	InTheWay []reduce.IrreduciblePart
}

// Plan computes what the caller's compaction would do. own is the caller's own text of the summary; empty if it has
// none.
func (in Inputs) Plan(own string) (Plan, error) {
	standing, err := in.Standing()
	if err != nil {
		return Plan{}, err
	}
	p := Plan{
		Policy:   in.Projection.PolicyName(),
		Before:   Size{standing.Messages(), standing.Tokens()},
		Strategy: in.Caller.Strategy, KeepLastTurns: in.Caller.KeepLastTurns, TargetTokens: in.Caller.Goal,
	}
	if goal := in.Caller.Goal; own == "" && goal > 0 && p.Before.Tokens <= goal {
		p.Nothing = fmt.Sprintf("the context holds %d tokens and may hold %d", p.Before.Tokens, goal)
		return p, nil
	}
	open := p.Strategy == ""
	if open {
		if p.Strategy, err = in.cheapest(); err != nil {
			return p, err
		}
		in.Caller.Strategy = p.Strategy
	}
	if p.Strategy == reduce.Summarize {
		var worth bool
		if p.Summary, worth, p.Nothing, err = in.planSummary(own); err != nil {
			return p, err
		}
		if open && !worth { // the caller named no strategy: drop without a summary
			p.Summary, p.Nothing = nil, ""
			p.Strategy, in.Caller.Strategy = reduce.Drop, reduce.Drop
		}
		if p.Summary != nil {
			return p, nil
		}
	}
	if p.Nothing == "" {
		in.Decided, p.Nothing, err = in.Decide(nil)
	}
	if open && p.Strategy == reduce.Summarize && err == nil && p.Nothing == "" {
		var now Projected
		if now, err = in.Standing(); err == nil && now.Tokens() > p.Before.Tokens {
			// The existing summary is larger than what it would replace.
			in.Decided, in.Caller.Strategy, p.Strategy = nil, reduce.Drop, reduce.Drop
			_, p.Nothing, err = in.Decide(nil)
		}
	}
	if p.Nothing != "" {
		p.Short = in.Shortfall(standing)
	}
	return p, err
}

// cheapest returns the first of mask, then summarize (or drop, if the policy makes no summaries), that
// reaches the goal; the last is not tried.
func (in Inputs) cheapest() (reduce.Strategy, error) {
	in.Caller.Strategy = reduce.Mask
	masks, _, err := in.Decide(nil)
	if err != nil {
		return "", err
	}
	if masks != nil {
		in.Decided = masks
		masked, err := in.Standing()
		if err != nil || masked.Tokens() <= in.Caller.Goal {
			return reduce.Mask, err
		}
	}
	if in.Reduction.Collapse.StartAt == 0 {
		return reduce.Drop, nil
	}
	return reduce.Summarize, nil
}

// planSummary finds the span of which a summary must be made; p is nil if there is one already. nothing says why no
// summary can replace anything. worth reports whether the summary pays even if the caller did not ask for one.
func (in Inputs) planSummary(own string) (p *summarize.Proposal, worth bool, nothing string, err error) {
	pipeline, reserved := in.pipeline()
	if own != "" {
		if tokens, most := in.Conversation.Gauge().Text(own), pipeline.QuotableTokens(in.Budget); tokens > most {
			return nil, false, "", &eventlog.InvalidError{Field: "summary", Reason: fmt.Sprintf("takes %d tokens; the context has room for %d", tokens, most)}
		}
	}
	ask := in.Caller
	ask.Reserved = reserved.Reserved
	span, ready, nothing := pipeline.SpanFor(in.Budget, in.Before, ask, own != "")
	if nothing != "" || ready.ID != "" {
		return nil, nothing == "", nothing, nil
	}
	p = in.propose(pipeline, span, "compaction", pipeline.SummaryTokensFor(in.Budget, ask))
	// If the goal can be reached, the summary must not be so long that it is missed again.
	misses := span.Leaves < ask.Goal && span.Leaves+p.MaxOutputTokens > ask.Goal
	return p, !misses && pipeline.Worth(in.Budget, span), "", nil
}

// Decide makes the event of the caller's compaction; if there is none, nothing says why. made is the summary that was
// planned; nil if none was.
func (in Inputs) Decide(made *summarize.Summary) (c *eventlog.Compaction, nothing string, err error) {
	pipeline, reserved := in.pipeline()
	ask := in.Caller
	ask.Reserved = reserved.Reserved
	var text reduce.Summary
	switch {
	case made != nil:
		text = in.quotable(*made)
	case ask.Strategy == reduce.Summarize:
		if _, text, nothing = pipeline.SpanFor(in.Budget, in.Before, ask, false); nothing != "" || text.ID == "" {
			return nil, cmp.Or(nothing, "the summary that it was to quote is not there any more"), nil
		}
	}
	return pipeline.Decide(in.Budget, in.Before, ask, text)
}

// Shortfall computes by how much a context exceeds the goal of the caller's compaction.
func (in Inputs) Shortfall(p Projected) Shortfall {
	// most is the maximum of reported parts.
	const most = 20
	goal := in.Caller.Goal
	if goal == 0 || p.Tokens() <= goal {
		return Shortfall{}
	}
	pipeline, _ := in.pipeline()
	parts := pipeline.InTheWay(p.Result.View, p.Tokens()-p.Result.View.Tokens())
	return Shortfall{p.Tokens() - goal, parts[:min(len(parts), most)]}
}
