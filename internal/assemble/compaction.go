package assemble

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/summarize"
)

// Compaction asks to make a session's context smaller although its budget does not
// demand it. What is decided holds for the session, whatever the policy and the budget.
type Compaction struct {
	SessionID string
	// Of, if not 0, is the incarnation of the session that is meant.
	Of eventlog.Incarnation
	// Request gives the budget and the policy by which the context is measured where
	// Measured is set, or the session was never assembled, and how summaries are made.
	// Otherwise those of the newest projection do.
	Request  Request
	Measured bool
	// Strategy is empty for the cheapest that suffices.
	Strategy reduce.Strategy
	// KeepLastTurns is 0 for the policy's. TargetTokens is 0 for as little as the strategy
	// or the summary allows, and without either for what the policy collapses to.
	KeepLastTurns uint32
	TargetTokens  uint64
	// Summary is the caller's own text; empty if it brings none.
	Summary string
}

// Plan is what a compaction would do.
type Plan struct {
	// Policy is the projection policy by which the context is measured.
	Policy string
	// Nothing says why there is nothing to do; empty if there is something. Short is then
	// by how much the target is missed all the same.
	Nothing string
	Short   Shortfall
	Before  Size
	// Strategy, KeepLastTurns and TargetTokens are the request's with everything filled
	// in that it left open.
	Strategy      reduce.Strategy
	KeepLastTurns uint32
	TargetTokens  uint64
	// Summary is the summary that has to be made first; nil if none has.
	Summary *summarize.Proposal
}

// Shortfall is by how many tokens a context is over what a compaction was to leave, and
// what is left in it, the largest parts first. Zero where it is not.
type Shortfall struct {
	Over     uint64
	InTheWay []reduce.IrreduciblePart
}

// Compacted is a compaction that was done.
type Compacted struct {
	Collapsed
	Short Shortfall
	// Event is what the log is to hold of it, and AsOf the event that it was decided at.
	Event *eventlog.Compaction
	AsOf  eventlog.Seq
	// Previous is the projection that showed the state before; empty if there was none.
	Previous string
	// Fingerprint is that of the policy and budget by which it was measured.
	Fingerprint string
	// Projection is the one that shows the state after. Its ID is empty where it could not
	// be recorded: Unrecorded says why, and the next assembly makes another.
	Projection records.Projection
	Unrecorded error
}

// PlanCompaction says what a compaction would do. It changes nothing.
func (e *Engine) PlanCompaction(ctx context.Context, c Compaction) (Plan, error) {
	s, release, err := e.sessions.acquire(ctx, c.SessionID)
	if err != nil {
		return Plan{}, err
	}
	defer release()
	in, _, err := e.compactable(ctx, s, c)
	if err != nil {
		return Plan{}, err
	}
	return in.plan(c)
}

// compactable gathers what a session is compacted by, and the id of its newest
// projection.
func (e *Engine) compactable(ctx context.Context, s *session, c Compaction) (in inputs, previous string, err error) {
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
	of := Request{SessionID: c.SessionID, Policy: c.Request.Policy}
	var b budget.Budget
	if previous != "" && !c.Measured {
		newest, err := records.Get(ctx, e.store, c.SessionID, previous)
		if err != nil {
			return in, "", err
		}
		if err := newest.LoadTexts(ctx, e.store, c.SessionID); err != nil {
			return in, "", err
		}
		b, of.Policy.Reduction, of.Policy.Projection = newest.Budget, newest.Reduction, newest.Projection
	} else if b, err = e.measure(ctx, c, info.Head); err != nil {
		return in, "", err
	}
	gauge, err := e.gauge(b)
	if err != nil {
		return in, "", err
	}
	if of.Policy.Projection.Name == projection.HarnessView && c.Summary != "" {
		return in, "", &eventlog.InvalidError{Field: "summary", Reason: "under harness_view the summaries are the harness's; use mask or window"}
	}
	if of.Policy.Projection.Name == projection.HarnessView && c.Strategy == reduce.Summarize {
		return in, "", &eventlog.InvalidError{Field: "strategy", Reason: "under harness_view the summaries are the harness's; use mask or window"}
	}
	conv, err := s.shown(ctx, e.store, gauge, nil, of.Policy.Projection)
	if err != nil {
		return in, "", err
	}
	if in, err = e.inputs(ctx, s, conv, b, of); err != nil {
		return in, "", err
	}
	in.caller = reduce.Ask{Goal: c.TargetTokens, Strategy: c.Strategy, KeepLastTurns: c.KeepLastTurns}
	switch {
	case c.Summary != "":
		in.caller.Strategy = reduce.Summarize
	case in.caller.Goal == 0 && c.Strategy == "":
		in.caller.Goal = b.Share(in.policy.Collapse.To)
	}
	if in.caller.KeepLastTurns == 0 {
		in.caller.KeepLastTurns = max(in.policy.Collapse.KeepLastTurns, 1)
	}
	if in.summaries, err = e.offered(ctx, s, in); err == nil {
		_, err = s.look(ctx, e.store)
	}
	return in, previous, err
}

// measure is the budget of a request, as an assembly would have it.
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

func (in inputs) plan(c Compaction) (Plan, error) {
	standing, err := in.standing()
	if err != nil {
		return Plan{}, err
	}
	p := Plan{
		Policy:   in.shows.PolicyName(),
		Before:   Size{standing.messages(), standing.tokens()},
		Strategy: in.caller.Strategy, KeepLastTurns: in.caller.KeepLastTurns, TargetTokens: in.caller.Goal,
	}
	if goal := in.caller.Goal; c.Summary == "" && goal > 0 && p.Before.Tokens <= goal {
		p.Nothing = fmt.Sprintf("the context holds %d tokens and may hold %d", p.Before.Tokens, goal)
		return p, nil
	}
	open := p.Strategy == ""
	if open {
		if p.Strategy, err = in.cheapest(); err != nil {
			return p, err
		}
		in.caller.Strategy = p.Strategy
	}
	if p.Strategy == reduce.Summarize {
		var worth bool
		if p.Summary, worth, p.Nothing, err = in.planSummary(c); err != nil {
			return p, err
		}
		if open && !worth { // nobody asked for a summary, and groups can leave without
			p.Summary, p.Nothing = nil, ""
			p.Strategy, in.caller.Strategy = reduce.Drop, reduce.Drop
		}
		if p.Summary != nil {
			return p, nil
		}
	}
	if p.Nothing == "" {
		_, p.Nothing, err = in.decide(nil)
	}
	if p.Nothing != "" {
		p.Short = in.shortfall(standing)
	}
	return p, err
}

// cheapest is the first strategy that comes down to the goal.
func (in inputs) cheapest() (reduce.Strategy, error) {
	in.caller.Strategy = reduce.Mask
	masks, _, err := in.decide(nil)
	if err != nil {
		return "", err
	}
	if masks != nil {
		in.decided = masks
		masked, err := in.standing()
		if err != nil || masked.tokens() <= in.caller.Goal {
			return reduce.Mask, err
		}
	}
	if in.policy.Collapse.StartAt == 0 {
		return reduce.Drop, nil
	}
	return reduce.Summarize, nil
}

// planSummary finds out whether a summary has to be made, and for what; nothing says why
// none can replace anything. worth is set where one would be made or used without anybody
// asking.
func (in inputs) planSummary(c Compaction) (p *summarize.Proposal, worth bool, nothing string, err error) {
	pipeline, reserved := in.pipeline()
	if c.Summary != "" {
		if tokens, most := in.conv.Gauge().Text(c.Summary), pipeline.QuotableTokens(in.budget); tokens > most {
			return nil, false, "", &eventlog.InvalidError{Field: "summary", Reason: fmt.Sprintf("takes %d tokens; the context has room for %d", tokens, most)}
		}
	}
	ask := in.caller
	ask.Reserved = reserved.Reserved
	span, ready, nothing := pipeline.SpanFor(in.budget, in.before, ask, c.Summary != "")
	if nothing != "" || ready.ID != "" {
		return nil, nothing == "", nothing, nil
	}
	p = in.propose(pipeline, span, c.Request, "compaction")
	p.SessionID = c.SessionID
	return p, pipeline.Worth(in.budget, span), "", nil
}

// decide says what the log is to hold of the compaction that is asked for. made is the
// summary that was planned; nil if none was.
func (in inputs) decide(made *summarize.Summary) (c *eventlog.Compaction, nothing string, err error) {
	pipeline, reserved := in.pipeline()
	ask := in.caller
	ask.Reserved = reserved.Reserved
	var text reduce.Summary
	switch {
	case made != nil:
		text = quotable(*made)
	case ask.Strategy == reduce.Summarize:
		if _, text, nothing = pipeline.SpanFor(in.budget, in.before, ask, false); nothing != "" || text.ID == "" {
			return nil, cmp.Or(nothing, "the summary that it was to quote is not there any more"), nil
		}
	}
	return pipeline.Decide(in.budget, in.before, ask, text)
}

// shortfall is by how much a context is over what was asked for.
func (in inputs) shortfall(p projected) Shortfall {
	// most bounds the parts that are reported.
	const most = 20
	goal := in.caller.Goal
	if goal == 0 || p.tokens() <= goal {
		return Shortfall{}
	}
	pipeline, _ := in.pipeline()
	parts := pipeline.InTheWay(p.result.View, p.tokens()-p.result.View.Tokens())
	return Shortfall{p.tokens() - goal, parts[:min(len(parts), most)]}
}

// Mark writes the event of a compaction after the log; durable on return.
type Mark func(ctx context.Context, c *Compacted) (eventlog.Seq, error)

// Compact does what was planned. It holds once mark has returned, and not at all where
// that fails. summary is the one that was planned, or nil. Where there is nothing to do
// any more, nothing says why. The session is not assembled meanwhile.
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
	before, err := in.standing()
	if err != nil {
		return nil, "", err
	}
	event, nothing, err := in.decide(summary)
	if event == nil || err != nil {
		return nil, nothing, err
	}
	after := in
	after.decided = event
	if summary != nil {
		after.summaries = slices.Concat(in.summaries, []summarize.Summary{*summary})
	}
	shown, err := after.run()
	if err != nil {
		return nil, "", err
	}
	out = &Compacted{Event: event, AsOf: in.conv.Head(), Previous: previous, Fingerprint: in.fingerprint}
	out.Collapsed = after.collapsed(before, shown)
	out.Projection = after.record(shown, Request{}, e.opts.Clock())
	if event.KeptEventIDs, err = e.eventIDs(ctx, c.SessionID, out.Projection); err != nil {
		return nil, "", err
	}
	event.PreTokens, event.PostTokens = &out.Before.Tokens, &out.After.Tokens
	seq, err := mark(ctx, out)
	if err != nil {
		return nil, "", err
	}
	out.Short = in.shortfall(shown)
	out.Unrecorded = e.showCompacted(context.WithoutCancel(ctx), s, in, seq, out)
	return out, "", nil
}

// showCompacted records the projection that shows a session as of its compaction.
func (e *Engine) showCompacted(ctx context.Context, s *session, in inputs, seq eventlog.Seq, out *Compacted) error {
	conv, err := s.shown(ctx, e.store, in.conv.Gauge(), &seq, in.shows)
	if err != nil {
		return err
	}
	in.conv = conv
	if in.summaries, err = e.offered(ctx, s, in); err != nil {
		return err
	}
	p, err := in.run()
	if err != nil {
		return err
	}
	record := in.record(p, Request{Policy: Policy{Reason: "compaction"}}, e.opts.Clock())
	made, err := e.finish(ctx, s, p, Request{SessionID: s.id}, record, false)
	if err != nil {
		return err
	}
	out.Projection, out.After, out.Short = made.Projection, Size{p.messages(), p.tokens()}, in.shortfall(p)
	return nil
}

// eventIDs are those of the events of which a projection shows at least a part.
func (e *Engine) eventIDs(ctx context.Context, sessionID string, r records.Projection) ([]string, error) {
	var ids []string
	shown := append(r.Kept.Seqs(), r.Redacted.Seqs()...)
	in := make(map[eventlog.Seq]bool, len(shown))
	for _, seq := range shown {
		in[seq] = true
	}
	for event, err := range e.store.Read(ctx, sessionID, 1, r.AsOf) {
		if err != nil {
			return nil, err
		}
		if in[event.Seq] {
			ids = append(ids, event.ID)
		}
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
	e.sessions.summarize(p.SessionID)
	return s, nil
}
