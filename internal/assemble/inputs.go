package assemble

import (
	"context"
	"time"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/render"
	"github.com/contextd/contextd/internal/summarize"
)

// inputs are everything that decides what a context shows.
type inputs struct {
	// ctx ends what is computed from them: who asked may be gone.
	ctx       context.Context
	conv      *reduce.Conversation
	policy    reduce.Policy
	budget    budget.Budget
	before    reduce.State
	ask       reduce.Ask
	summaries []summarize.Summary
	// caller is what a caller's compaction asks for, and decided what it comes to, as if
	// the log held that already.
	caller  reduce.Ask
	decided *eventlog.Compaction
	// session keeps policies available; what they decide does not depend on it.
	session *session
	// shows is the projection policy, and shown the state of its decisions.
	shows projection.Options
	shown projection.State
	// fingerprint is that of the policy and budget under which the decisions stick.
	fingerprint string
}

// inputs gathers what a request decides by from the records and the artifacts.
func (e *Engine) inputs(ctx context.Context, s *session, conv *reduce.Conversation, b budget.Budget, req Request) (inputs, error) {
	in := inputs{ctx: ctx, session: s, conv: conv, policy: req.Policy.reduction(), budget: b, ask: req.ask, shows: req.Policy.Projection}
	in.fingerprint = records.Fingerprint(in.shows, in.policy, b)
	last, err := records.DecisionsAt(ctx, e.store, req.SessionID, in.fingerprint, conv)
	if err != nil {
		return in, err
	}
	in.before, in.shown = last.Reduction, last.Shown
	in.summaries, err = e.offered(ctx, s, in)
	return in, err
}

// projected is a reduced conversation laid out as messages.
type projected struct {
	conv      *reduce.Conversation
	result    reduce.Result // its view as the projection policy shows it
	reduced   reduce.View
	applied   projection.Applied
	reminders []reduce.Reminder
}

// run is the pure function at the heart: log, artifacts, policy, budget and state
// give the view.
func (in inputs) run() (projected, error) {
	pipeline, ask := in.pipeline()
	result, err := pipeline.Run(in.budget, in.before, ask)
	if err != nil {
		return projected{}, err
	}
	return in.show(result)
}

// show applies the projection policy to what was reduced, and says which reminders
// come after it.
func (in inputs) show(result reduce.Result) (projected, error) {
	policy, err := in.session.projector(in.shows)
	if err != nil {
		return projected{}, err
	}
	applied := policy.Apply(result.View, in.conv.Turns(), in.shown)
	if err := in.ctx.Err(); err != nil {
		return projected{}, err
	}
	reduced := result.View
	result.View = applied.View
	if applied.Step != nil {
		result.Steps = append(result.Steps[:len(result.Steps):len(result.Steps)], *applied.Step)
	}
	live := render.LiveReminders(in.conv.Reminders(), in.conv.Turns(), result.State.CollapsedThrough)
	return projected{in.conv, result, reduced, applied, live}, nil
}

// pipeline returns the pipeline and what it is asked for. What the reminders take is
// reserved, those included that may yet leave with a run.
func (in inputs) pipeline() (*reduce.Pipeline, reduce.Ask) {
	quoted := make([]reduce.Summary, len(in.summaries))
	for i, s := range in.summaries {
		quoted[i] = quotable(s)
	}
	pipeline := reduce.NewPipeline(in.policy, in.conv, quoted...).Until(in.ctx)
	if in.decided != nil {
		pipeline.Assume(in.decided)
	}
	ask := in.ask
	for _, r := range render.LiveReminders(in.conv.Reminders(), in.conv.Turns(), pipeline.From(in.before).CollapsedThrough) {
		ask.Reserved += r.Tokens
	}
	return pipeline, ask
}

// quotable is a summary as a context quotes it.
func quotable(s summarize.Summary) reduce.Summary {
	by := s.Summarizer
	if s.Model != "" {
		by += " (" + s.Model + ")"
	}
	return reduce.Summary{ID: s.ID, Through: s.To, By: by, Text: s.Text}
}

// record describes a projection that was computed just now.
func (in inputs) record(p projected, req Request, at time.Time) records.Projection {
	r := records.Projection{
		Policy: in.shows.PolicyName(), Reason: req.Policy.Reason, IdempotencyKey: req.IdempotencyKey, RequestDigest: req.Digest,
		Fingerprint: in.fingerprint, AsOf: p.conv.Head(), Time: at,
		Before: in.before, After: p.result.State, Reduction: in.policy, Budget: in.budget, Ask: in.ask,
		Projection: in.shows, ShownBefore: in.shown, ShownAfter: p.applied.State,
		RootsConsulted: p.applied.RootsConsulted, SafetyBlocked: p.applied.SafetyBlocked, Reverted: p.applied.Reason,
		Steps: p.result.Steps, Tokens: p.tokens(),
	}
	for _, s := range in.summaries {
		if r.Summaries = append(r.Summaries, s.ID); s.ID == r.After.Summary {
			r.SummaryVersion = s.Version
		}
	}
	r.Observe(p.result.View, p.conv)
	return r
}

// tokens is the size of what is rendered, injections left out.
func (p projected) tokens() uint64 {
	n := p.result.View.Tokens()
	for _, r := range p.reminders {
		n += r.Tokens
	}
	return n
}

// messages is how many messages are rendered, injections left out.
func (p projected) messages() int { return p.result.View.Messages() + len(p.reminders) }

// through is the last event of the dropped run.
func (p projected) through() eventlog.Seq { return p.result.State.CollapsedThrough }

// standing is what the decisions taken so far show, whether over the budget or not.
func (in inputs) standing() (projected, error) {
	pipeline, ask := in.pipeline()
	now, err := pipeline.Current(in.budget, in.before, ask)
	if err != nil {
		return projected{}, err
	}
	return in.show(now)
}
