package assemble

import (
	"context"
	"fmt"
	"slices"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/summarize"
)

// Compaction asks to make a session's context smaller although its budget does not
// demand it.
type Compaction struct {
	SessionID string
	// Of, if not 0, is the incarnation of the session that is meant.
	Of eventlog.Incarnation
	// Request gives the budget and the policy of a session that was never assembled,
	// and how summaries are made. Any other is compacted under the policy and budget of
	// its newest projection.
	Request Request
	// Strategy is empty for the cheapest that suffices.
	Strategy reduce.Strategy
	// KeepLastTurns and TargetTokens are 0 for the policy's.
	KeepLastTurns uint32
	TargetTokens  uint64
	// Summary is the caller's own text; empty if it brings none.
	Summary string
}

// Plan is what a compaction would do.
type Plan struct {
	// Nothing says why there is nothing to do; empty if there is something.
	Nothing string
	Before  Size
	// Strategy, KeepLastTurns and TargetTokens are the request's with everything filled
	// in that it left open.
	Strategy      reduce.Strategy
	KeepLastTurns uint32
	TargetTokens  uint64
	// Summary is the summary that has to be made first; nil if none has.
	Summary *summarize.Proposal
}

// Compacted is a compaction that was done.
type Compacted struct {
	Collapsed
	// Previous is the projection that showed the state before; empty if there was none.
	Previous string
	// Projection is the one that shows the state after.
	Projection projection.Record
	// Kept are the ids of the events of which at least a part is shown.
	Kept []string
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
	return e.plan(in, c)
}

// compactable gathers what a session is compacted by, and the id of its newest
// projection.
func (e *Engine) compactable(ctx context.Context, s *session, c Compaction) (in inputs, previous string, err error) {
	in.session = s
	s.pinned = c.Of
	info, err := s.look(ctx, e.store)
	if err != nil {
		return in, "", err
	}
	newest, err := e.search(ctx, c.SessionID, info.Head, 0, func(projection.Record) bool { return true })
	if err != nil {
		return in, "", err
	}
	if newest == nil {
		if in.budget, _, err = e.resolve(c.Request.Budget); err != nil {
			return in, "", err
		}
		in.policy = c.Request.Policy.reduction()
		in.shows = c.Request.Policy.Projection
		in.fingerprint = projection.Fingerprint(in.shows, in.policy, in.budget)
	} else {
		if err := newest.LoadTexts(ctx, e.store, c.SessionID); err != nil {
			return in, "", err
		}
		in.policy, in.budget, in.before, in.fingerprint = newest.Reduction, newest.Budget, newest.After, newest.Fingerprint
		in.shows, in.shown = newest.Projection, newest.ShownAfter
		previous = newest.ID
	}
	gauge, err := e.gauge(in.budget)
	if err != nil {
		return in, "", err
	}
	if in.conv, err = s.shown(ctx, e.store, gauge, nil, in.shows); err != nil {
		return in, "", err
	}
	if in.shows.Name == projection.HarnessView && (c.Strategy == reduce.Summarize || c.Summary != "") {
		return in, "", &eventlog.InvalidError{Field: "strategy", Reason: "under harness_view the summaries are the harness's; use mask or window"}
	}
	in.ask = reduce.Ask{Goal: c.TargetTokens, Strategy: c.Strategy, KeepLastTurns: c.KeepLastTurns}
	switch {
	case c.Summary != "": // the caller's text stands for all that may leave
		in.ask.Strategy, in.ask.Goal = reduce.Summarize, 1
	case in.ask.Goal == 0:
		in.ask.Goal = in.budget.Share(in.policy.Collapse.To)
	}
	if in.summaries, err = e.offered(ctx, s, in); c.Summary != "" {
		// No summary that was made ahead of need takes the place of the caller's own.
		in.summaries = slices.DeleteFunc(in.summaries, func(s summarize.Summary) bool { return s.ID != in.before.Summary })
	}
	if err == nil {
		_, err = s.look(ctx, e.store)
	}
	return in, previous, err
}

func (e *Engine) plan(in inputs, c Compaction) (Plan, error) {
	standing, err := in.standing()
	if err != nil {
		return Plan{}, err
	}
	p := Plan{
		Before:   Size{standing.messages(), standing.tokens()},
		Strategy: in.ask.Strategy, KeepLastTurns: in.ask.KeepLastTurns, TargetTokens: in.ask.Goal,
	}
	if p.KeepLastTurns == 0 {
		p.KeepLastTurns = in.policy.Collapse.KeepLastTurns
	}
	if p.Before.Tokens <= in.ask.Goal {
		p.Nothing = fmt.Sprintf("the context holds %d tokens and may hold %d", p.Before.Tokens, in.ask.Goal)
		return p, nil
	}
	open := p.Strategy == ""
	if open {
		if p.Strategy, err = e.cheapest(in); err != nil {
			return p, err
		}
		in.ask.Strategy = p.Strategy
	}
	if p.Strategy == reduce.Summarize {
		summary, err := e.planSummary(in, c, p)
		if err != nil || summary.Nothing == "" || !open {
			return summary, err
		}
		p.Strategy, in.ask.Strategy = reduce.Drop, reduce.Drop
	}
	after, err := in.run()
	if err != nil {
		return p, err
	}
	if after.tokens() >= p.Before.Tokens {
		p.Nothing = fmt.Sprintf("nothing that %s may touch is worth it beside the last %d turns", p.Strategy, p.KeepLastTurns)
	}
	return p, nil
}

// cheapest is the first strategy that comes down to the goal.
func (e *Engine) cheapest(in inputs) (reduce.Strategy, error) {
	in.ask.Strategy = reduce.Mask
	masked, err := in.run()
	switch {
	case err != nil:
		return "", err
	case masked.result.View.Tokens() <= in.ask.Goal:
		return reduce.Mask, nil
	case e.summaries == nil || in.policy.Collapse.StartAt == 0:
		return reduce.Drop, nil
	default:
		return reduce.Summarize, nil
	}
}

// planSummary finds out whether a summary has to be made, and for what.
func (e *Engine) planSummary(in inputs, c Compaction, p Plan) (Plan, error) {
	pipeline, ask := in.pipeline()
	if c.Summary != "" {
		if tokens, most := in.conv.Gauge().Text(c.Summary), pipeline.QuotableTokens(in.budget); tokens > most {
			return p, &eventlog.InvalidError{Field: "summary", Reason: fmt.Sprintf("takes %d tokens; the context has room for %d", tokens, most)}
		}
	}
	if span, ok := pipeline.SpanFor(in.budget, in.before, ask); ok {
		p.Summary = in.propose(pipeline, span, c.Request, "compaction")
		p.Summary.SessionID = c.SessionID
		return p, nil
	}
	after, err := in.run() // with one that is there already
	if err == nil && (after.through() <= in.before.CollapsedThrough || after.tokens() >= p.Before.Tokens) {
		p.Nothing = fmt.Sprintf("too little stands before the last %d turns", p.KeepLastTurns)
	}
	return p, err
}

// Compact does what was planned and records the projection that shows it, durable on
// return. summary is the one that was planned, or nil. Where the log has changed since
// so that there is nothing to do any more, it returns nil.
func (e *Engine) Compact(ctx context.Context, c Compaction, summary *summarize.Summary) (*Compacted, error) {
	s, release, err := e.sessions.acquire(ctx, c.SessionID)
	if err != nil {
		return nil, err
	}
	defer release()
	in, previous, err := e.compactable(ctx, s, c)
	if err != nil {
		return nil, err
	}
	if summary != nil {
		ids := []string{summary.ID}
		if in.before.Summary != "" && in.before.Summary != summary.ID {
			ids = []string{in.before.Summary, summary.ID}
		}
		if in.summaries, err = e.named(ctx, s, in.conv.Head(), ids); err != nil {
			return nil, err
		}
	}
	before, err := in.standing()
	if err != nil {
		return nil, err
	}
	after, err := in.run()
	if err != nil {
		return nil, err
	}
	if after.tokens() >= before.tokens() {
		return nil, nil
	}
	record := in.record(after, Request{Policy: Policy{Reason: "compaction"}}, e.opts.Clock())
	made, err := e.finish(ctx, s, after, Request{SessionID: c.SessionID}, record, false)
	if err != nil {
		return nil, err
	}
	out := &Compacted{Collapsed: in.collapsed(before, after), Previous: previous, Projection: made.Projection}
	out.Kept, err = e.eventIDs(ctx, c.SessionID, made.Projection)
	return out, err
}

// eventIDs are those of the events of which a projection shows at least a part.
func (e *Engine) eventIDs(ctx context.Context, sessionID string, r projection.Record) ([]string, error) {
	var ids []string
	shown := append(projection.Seqs(r.Kept), projection.Seqs(r.Redacted)...)
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
