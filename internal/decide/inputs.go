// Package decide computes what a context shows, and what a compaction would do to it, from a log, its summaries, a
// policy, a budget and the decisions so far. It reads no store and keeps no state.
package decide

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/render"
	"github.com/contextd/contextd/internal/summarize"
)

// Inputs are everything that decides what a context shows.
type Inputs struct {
	// Ctx ends the computation when the caller does not need it any more.
	Ctx          context.Context
	SessionID    string
	Of           eventlog.Incarnation
	Conversation *reduce.Conversation
	Reduction    reduce.Policy
	Budget       budget.Budget
	Before       reduce.State
	// Ask is what the request demands in addition to the budget.
	Ask reduce.Ask
	// Summaries are the summaries that may be quoted, oldest first. Summarizing says how new ones are made.
	Summaries   []summarize.Summary
	Summarizing SummaryPolicy
	// Caller is what a caller's compaction asks for. Decided is the event that it leads to; the computation treats it
	// as if it were in the log already.
	Caller  reduce.Ask
	Decided *eventlog.Compaction
	// Projection is the projection policy, Policy the same compiled, and ShownBefore the state of the
	// decisions that it took so far.
	Projection  projection.Options
	Policy      projection.Policy
	ShownBefore projection.State
	// Fingerprint is the fingerprint of the policy and budget under which the decisions hold.
	Fingerprint string
	// Observed is the cached observation of the last view, which Record continues; nil is none.
	Observed *records.Observation
	// Written is the digest stored last under the fingerprint; zero if none is.
	Written reduce.Written
}

// Projected is a reduced conversation after the projection policy, with the reminders that follow it.
type Projected struct {
	Conversation *reduce.Conversation
	// Result has the view after the projection policy, Reduced is the view before it.
	Result    reduce.Result
	Reduced   reduce.View
	Applied   projection.Applied
	Reminders []reduce.Reminder // shown after the view
}

// Run computes the context. It is a pure function: log, artifacts, policy, budget and state give the view.
func (in Inputs) Run() (Projected, error) {
	pipeline, ask := in.pipeline()
	result, err := pipeline.Run(in.Budget, in.Before, ask)
	if err != nil {
		return Projected{}, err
	}
	return in.show(result)
}

// Unbind adds to the state the bound reasoning that a context shows although models saw something else before it. If
// there is any, it returns true, and Run gives a context without it.
func (in *Inputs) Unbind(p Projected, seen reduce.Seen) bool {
	from := p.Result.View.Unbound(seen)
	if from > 0 {
		in.Before.Unbound = in.Before.Unbound.With(eventlog.Range{From: from, To: p.Conversation.Head()})
	}
	return from > 0
}

// show applies the projection policy to a reduced view, and finds the reminders that are live after it.
func (in Inputs) show(result reduce.Result) (Projected, error) {
	applied := in.Policy.Apply(result.View, in.Conversation.Turns(), in.ShownBefore)
	if err := in.Ctx.Err(); err != nil {
		return Projected{}, err
	}
	reduced := result.View
	result.View = applied.View
	result.Steps = slices.Clip(result.Steps)
	if in.Projection.Scrub { // appended, as the first step says why groups were dropped
		n := reduced.Tokens()
		result.Steps = append(result.Steps, reduce.Step{Reducer: "scrub", TokensBefore: n, TokensAfter: n, Touched: in.Conversation.Replaced()})
	}
	if applied.Step != nil {
		result.Steps = append(result.Steps, *applied.Step)
	}
	live := render.LiveReminders(in.Conversation.Reminders(), in.Conversation.Turns(), result.State.CollapsedThrough)
	return Projected{in.Conversation, result, reduced, applied, live}, nil
}

// pipeline returns the pipeline and the Ask for it. It reserves tokens for all live reminders, even those
// that a cut may drop.
func (in Inputs) pipeline() (*reduce.Pipeline, reduce.Ask) {
	quoted := make([]reduce.Summary, len(in.Summaries))
	for i, s := range in.Summaries {
		quoted[i] = in.quotable(s)
	}
	pipeline := reduce.NewPipeline(in.Reduction, in.Conversation, quoted...).Until(in.Ctx).Asks(in.Budget.Model)
	pipeline.Offer(in.Written)
	if p, ok := in.Policy.(projection.Rooted); ok {
		pipeline.Protect(p.Named)
	}
	if in.Decided != nil {
		pipeline.Assume(in.Decided)
	}
	ask := in.Ask
	for _, r := range render.LiveReminders(in.Conversation.Reminders(), in.Conversation.Turns(), pipeline.From(in.Before).CollapsedThrough) {
		ask.Reserved += r.Tokens
	}
	return pipeline, ask
}

// quotable converts a summary to the form in which a digest quotes it.
func (in Inputs) quotable(s summarize.Summary) reduce.Summary {
	by := s.Summarizer
	if s.Model != "" {
		by += " (" + s.Model + ")"
	}
	return reduce.Summary{ID: s.ID, Through: s.To, By: by, Text: in.Projection.ScrubText(s.Text)}
}

// Record makes the record of a projection that was just computed. The caller adds what its request says:
// reason, idempotency key, digest.
func (in Inputs) Record(p Projected, at time.Time) records.Projection {
	r := records.Projection{
		Policy:      in.Projection.PolicyName(),
		Fingerprint: in.Fingerprint, AsOf: p.Conversation.Head(), Time: at,
		Before: in.Before, After: p.Result.State, Reduction: in.Reduction, Budget: in.Budget, Ask: in.Ask,
		Projection: in.Projection, ShownBefore: in.ShownBefore, ShownAfter: p.Applied.State,
		RootsConsulted: p.Applied.RootsConsulted, SafetyBlocked: p.Applied.SafetyBlocked, Reverted: p.Applied.Reason,
		Steps: p.Result.Steps, Tokens: p.Tokens(),
	}
	for _, s := range in.Summaries {
		if r.Summaries = append(r.Summaries, s.ID); s.ID == r.After.Summary {
			r.SummaryVersion = s.Version
		}
	}
	r.Observe(cmp.Or(in.Observed, &records.Observation{}), p.Result.View, p.Conversation, p.Reminders)
	return r
}

// Tokens returns the size of the rendered context, without injections.
func (p Projected) Tokens() uint64 {
	n := p.Result.View.Tokens()
	for _, r := range p.Reminders {
		n += r.Tokens
	}
	return n
}

// Messages counts the rendered messages, without injections.
func (p Projected) Messages() int { return p.Result.View.Messages() + len(p.Reminders) }

// Through returns the last event of the dropped run.
func (p Projected) Through() eventlog.Seq { return p.Result.State.CollapsedThrough }

// Standing computes what the decisions so far show, even if that exceeds the budget.
func (in Inputs) Standing() (Projected, error) {
	pipeline, ask := in.pipeline()
	now, err := pipeline.Current(in.Budget, in.Before, ask)
	if err != nil {
		return Projected{}, err
	}
	return in.show(now)
}
