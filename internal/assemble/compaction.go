package assemble

import (
	"context"
	"slices"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/decide"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/summarize"
)

// Compaction is a caller's request to make a session's context smaller although its budget does not demand that. The
// decision holds for the session, whatever the policy and the budget of later requests.
type Compaction struct {
	SessionID string
	// Of, if not 0, is the incarnation of the session that is meant.
	Of eventlog.Incarnation
	// Request says how summaries are made. The context is measured by Request's budget and policy if Measured is set
	// or the session was never assembled, otherwise by those of the newest projection.
	Request  Request
	Measured bool
	// Strategy is empty for the cheapest strategy that reaches the target.
	Strategy reduce.Strategy
	// KeepLastTurns 0 is the policy's value. TargetTokens 0 means the depth of the policy's cuts that pay
	// or, with a Strategy or a Summary, as few tokens as that reaches.
	KeepLastTurns uint32
	TargetTokens  uint64
	// Summary is the caller's own text; empty if it has none.
	Summary string
}

// Compacted is the result of a compaction.
type Compacted struct {
	decide.Collapsed
	Short decide.Shortfall
	// Event is the compaction event for the log, and AsOf the head at which it was decided.
	Event *eventlog.Compaction
	AsOf  eventlog.Seq
	// Previous is the id of the newest projection before the compaction; empty if there was none.
	Previous string
	// Fingerprint is the fingerprint of the policy and budget by which the context was measured.
	Fingerprint string
	// Projection shows the session after the compaction. If it could not be recorded, its ID is empty,
	// Unrecorded says why, and the next assembly records one.
	Projection records.Projection
	Unrecorded error
}

// PlanCompaction computes what a compaction would do. It changes nothing.
func (e *Engine) PlanCompaction(ctx context.Context, c Compaction) (decide.Plan, error) {
	s, release, err := e.sessions.acquire(ctx, c.SessionID)
	if err != nil {
		return decide.Plan{}, err
	}
	defer release()
	in, _, err := e.compactable(ctx, s, c)
	if err != nil {
		return decide.Plan{}, err
	}
	return in.Plan(c.Summary)
}

// compactable gathers the inputs of a compaction, and the id of the session's newest projection.
func (e *Engine) compactable(ctx context.Context, s *session, c Compaction) (in decide.Inputs, previous string, err error) {
	s.pinned = c.Of
	info, err := s.look(ctx, e.store)
	if err != nil {
		return in, "", err
	}
	if err := s.index(ctx, e.store); err != nil {
		return in, "", err
	}
	previous, err = records.Newest(ctx, e.store, c.SessionID)
	if err != nil {
		return in, "", err
	}
	policy, b, err := e.measuredBy(ctx, c, info.Head, previous)
	if err != nil {
		return in, "", err
	}
	policy.Projection = policy.Projection.WithScrubber(e.opts.Scrub)
	gauge, err := e.gauge(b)
	if err != nil {
		return in, "", err
	}
	if err := c.check(policy.Projection); err != nil {
		return in, "", err
	}
	conv, err := s.shown(ctx, e.store, gauge, nil, policy.Projection, "")
	if err != nil {
		return in, "", err
	}
	if in, err = e.inputs(ctx, s, conv, b, policy, e.fingerprint(policy, b)); err != nil {
		return in, "", err
	}
	in.Caller = c.ask(in.Reduction.Collapse, b)
	if in.Summaries, err = e.offered(ctx, s, in); err == nil {
		_, err = s.look(ctx, e.store)
	}
	return in, previous, err
}

// measuredBy returns the policy and the budget by which a context is measured: the request's, or those of projection
// previous. In both cases the request says how summaries are made.
func (e *Engine) measuredBy(ctx context.Context, c Compaction, head eventlog.Seq, previous string) (Policy, budget.Budget, error) {
	policy := c.Request.Policy
	if previous == "" || c.Measured {
		b, err := e.measure(ctx, c, head)
		return policy, b, err
	}
	newest, err := records.Get(ctx, e.store, c.SessionID, previous)
	if err != nil {
		return policy, budget.Budget{}, err
	}
	if err := newest.LoadTexts(ctx, e.store, c.SessionID); err != nil {
		return policy, budget.Budget{}, err
	}
	policy.Reduction, policy.Projection = newest.Reduction, newest.Projection
	return policy, newest.Budget, nil
}

// check refuses to summarize under harness_view, because there the harness writes the summaries.
func (c Compaction) check(by projection.Options) error {
	const reason = "under harness_view the summaries are the harness's; use mask or window"
	switch {
	case by.Name != projection.HarnessView:
		return nil
	case c.Summary != "":
		return &eventlog.InvalidError{Field: "summary", Reason: reason}
	case c.Strategy == reduce.Summarize:
		return &eventlog.InvalidError{Field: "strategy", Reason: reason}
	default:
		return nil
	}
}

// ask returns the compaction's request to the reducers; the policy fills in what the caller did not set.
func (c Compaction) ask(policy reduce.Collapse, b budget.Budget) reduce.Ask {
	ask := reduce.Ask{Goal: c.TargetTokens, Strategy: c.Strategy, KeepLastTurns: c.KeepLastTurns}
	switch {
	case c.Summary != "":
		ask.Strategy = reduce.Summarize
	case ask.Goal == 0 && c.Strategy == "":
		ask.Goal = b.Share(policy.Depth())
	}
	if ask.KeepLastTurns == 0 {
		ask.KeepLastTurns = max(policy.KeepLastTurns, 1)
	}
	return ask
}

// measure resolves the request's budget and calibrates it, as an assembly would.
func (e *Engine) measure(ctx context.Context, c Compaction, head eventlog.Seq) (budget.Budget, error) {
	if err := checkPolicy(c.Request.Policy); err != nil {
		return budget.Budget{}, err
	}
	b, _, err := e.resolve(c.Request.Budget)
	if err != nil {
		return b, err
	}
	learnt, _, err := records.Calibration(ctx, e.store, c.SessionID, head, b)
	return b.Calibrated(learnt), err
}

// Mark appends the event of a compaction to the log and returns its seq; durable on return.
type Mark func(ctx context.Context, c *Compacted) (eventlog.Seq, error)

// Compact does a planned compaction. The compaction is in effect when mark has returned without an error. summary is
// the one that was made for the plan, or nil. If there is nothing to compact any more, out is nil and nothing says
// why. Compact acquires the session, so no assembly of it runs at the same time.
func (e *Engine) Compact(ctx context.Context, c Compaction, summary *summarize.Summary, mark Mark) (out *Compacted, nothing string, err error) {
	s, release, err := e.sessions.acquire(ctx, c.SessionID)
	if err != nil {
		return nil, "", err
	}
	defer release()
	in, previous, err := e.compactable(ctx, s, c)
	if err != nil {
		return nil, "", err
	}
	before, err := in.Standing()
	if err != nil {
		return nil, "", err
	}
	event, nothing, err := in.Decide(summary)
	if event == nil || err != nil {
		return nil, nothing, err
	}
	after := in
	after.Decided = event
	if summary != nil {
		after.Summaries = slices.Concat(in.Summaries, []summarize.Summary{*summary})
	}
	shown, err := after.Run()
	if err != nil {
		return nil, "", err
	}
	out = &Compacted{Event: event, AsOf: in.Conversation.Head(), Previous: previous, Fingerprint: in.Fingerprint}
	out.Collapsed = after.Collapsed(before, shown)
	out.Projection = after.Record(shown, e.opts.Clock())
	if event.KeptEventIDs, err = e.eventIDs(ctx, c.SessionID, out.Projection); err != nil {
		return nil, "", err
	}
	event.PreTokens, event.PostTokens = &out.Before.Tokens, &out.After.Tokens
	seq, err := mark(ctx, out)
	if err != nil {
		return nil, "", err
	}
	out.Short = in.Shortfall(shown)
	in.Ctx = context.WithoutCancel(ctx) // the compaction is in effect, even if the caller has gone
	out.Unrecorded = e.showCompacted(in.Ctx, s, in, seq, out)
	return out, "", nil
}

// showCompacted records the projection of a session right after its compaction.
func (e *Engine) showCompacted(ctx context.Context, s *session, in decide.Inputs, seq eventlog.Seq, out *Compacted) error {
	conv, err := s.shown(ctx, e.store, in.Conversation.Gauge(), &seq, in.Projection, "")
	if err != nil {
		return err
	}
	in.Conversation = conv
	if in.Summaries, err = e.offered(ctx, s, in); err != nil {
		return err
	}
	p, err := in.Run()
	if err != nil {
		return err
	}
	p, made, messages, err := e.answerBound(ctx, s, in, p, Request{SessionID: s.id, Policy: Policy{Reason: "compaction"}})
	if err == nil {
		err = e.record(ctx, s, p, made, messages, nil)
	}
	if err != nil {
		return err
	}
	out.Projection, out.After, out.Short = made.Projection, decide.Size{Messages: p.Messages(), Tokens: p.Tokens()}, in.Shortfall(p)
	return nil
}

// eventIDs returns the ids of the events of which a projection shows at least a part.
func (e *Engine) eventIDs(ctx context.Context, sessionID string, r records.Projection) ([]string, error) {
	var ids []string
	shown := eventlog.RangesOf(append(r.Kept.Seqs(), r.Redacted.Seqs()...))
	for event, err := range eventlog.ReadRuns(ctx, e.store, sessionID, shown) {
		if err != nil {
			return nil, err
		}
		ids = append(ids, event.ID)
	}
	return ids, nil
}

// PutSummary stores the caller's own text for a planned span; durable on return.
func (e *Engine) PutSummary(ctx context.Context, p summarize.Proposal, text string) (summarize.Summary, error) {
	m, err := e.Material(ctx, p)
	if err != nil {
		return summarize.Summary{}, err
	}
	s := summarize.Summary{
		ID: summarize.SummaryID(p.From, p.To, summarize.Caller, text), From: p.From, To: p.To, Text: text, Ledger: m.Ledger, Index: m.Index,
		Summarizer: summarize.Caller, Extends: p.Extends, Time: e.opts.Clock(), Version: summarize.Version,
	}
	if err := summarize.Put(ctx, e.store, p.SessionID, p.Of, s); err != nil {
		return summarize.Summary{}, err
	}
	e.forgetSummaries(p.SessionID)
	return s, nil
}
