package assemble

import (
	"context"
	"slices"
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/records"
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

// offered returns the summaries that a projection may quote: the one in use and the
// newest.
func (e *Engine) offered(ctx context.Context, s *session, in inputs) ([]summarize.Summary, error) {
	if in.before.Summary == "" && in.policy.Collapse.StartAt == 0 && in.caller.Strategy != reduce.Summarize && in.ask.Strategy != reduce.Summarize {
		return nil, nil
	}
	all, err := e.summariesOf(ctx, s, in.conv.Head())
	if err != nil {
		return nil, err
	}
	newest := -1
	for i := range all {
		if all[i].Summarizer == summarize.Caller && decidedSummary(in.conv, all[i].ID) == nil {
			continue // it replaces what its caller said, and only as long as it does
		}
		if newest < 0 || all[i].To > all[newest].To || all[i].To == all[newest].To && !all[i].Time.Before(all[newest].Time) {
			newest = i
		}
	}
	var out []summarize.Summary
	for i := range all {
		if i == newest || all[i].ID == in.before.Summary {
			out = append(out, all[i])
		}
	}
	return out, nil
}

// summariesOf returns the summaries that end at an event or before, oldest first.
func (e *Engine) summariesOf(ctx context.Context, s *session, upTo eventlog.Seq) ([]summarize.Summary, error) {
	if s.summaries == nil {
		all, err := summarize.Load(ctx, e.store, s.id, 0)
		if err != nil {
			return nil, err
		}
		s.summaries = append([]summarize.Summary{}, all...)
	}
	n := slices.IndexFunc(s.summaries, func(x summarize.Summary) bool { return x.To > upTo })
	if n < 0 {
		n = len(s.summaries)
	}
	return s.summaries[:n:n], nil
}

// named returns the summaries with these ids, or *eventlog.NotFoundError.
func (e *Engine) named(ctx context.Context, s *session, asOf eventlog.Seq, ids []string) ([]summarize.Summary, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	all, err := e.summariesOf(ctx, s, asOf)
	if err != nil {
		return nil, err
	}
	out := make([]summarize.Summary, len(ids))
	for i, id := range ids {
		at := slices.IndexFunc(all, func(x summarize.Summary) bool { return x.ID == id })
		if at < 0 {
			return nil, &eventlog.NotFoundError{Kind: "summary", Name: id}
		}
		out[i] = all[at]
	}
	return out, nil
}

// summaryInForce is the summary that a record's context quotes.
func (e *Engine) summaryInForce(ctx context.Context, s *session, conv *reduce.Conversation, r records.Projection) (*summarize.Summary, error) {
	all, err := e.named(ctx, s, r.AsOf, []string{r.After.Summary})
	if err == nil {
		return &all[0], nil
	}
	if decided := decidedSummary(conv, r.After.Summary); decided != nil {
		return decided, nil
	}
	return nil, err
}

// Summaries lists the summaries of a session, oldest first.
func (e *Engine) Summaries(ctx context.Context, sessionID string) ([]summarize.Summary, error) {
	if _, err := e.store.Session(ctx, sessionID); err != nil {
		return nil, err
	}
	return summarize.Load(ctx, e.store, sessionID, 0)
}

// due is the summary that a context was cut without; nil if it was not cut, or none is
// worth making.
func (in inputs) due(p projected, req Request) *summarize.Proposal {
	if p.through() == p.result.Start.State.CollapsedThrough {
		return nil
	}
	return in.proposal(*p.result.Start, req)
}

// proposal is the summary that is worth making of what is shown; nil if none is.
func (in inputs) proposal(now reduce.Result, req Request) *summarize.Proposal {
	in.before = now.State
	pipeline, ask := in.pipeline()
	span, ok := pipeline.Propose(in.budget, now, ask)
	if !ok {
		return nil
	}
	return in.propose(pipeline, span, req, "threshold")
}

func (in inputs) propose(pipeline *reduce.Pipeline, span reduce.Span, req Request, trigger string) *summarize.Proposal {
	of := req.Policy.Summaries
	tokens := pipeline.SummaryTokens(in.budget)
	tokens -= tokens / 6 // for the quotation marks
	return &summarize.Proposal{
		SessionID: req.SessionID, Of: in.session.of, From: span.From, To: span.To, Extends: span.Extends,
		Summarizer: of.Summarizer, Instructions: of.Instructions, MaxInputTokens: of.MaxInputTokens,
		MaxOutputTokens: tokens, Tokenizer: in.conv.Gauge().Tokenizer(), Trigger: trigger,
	}
}

// lookAhead adds to the answer what its record leads to.
func (s *session) lookAhead(in inputs, p projected, req Request, out *Context) {
	turns := s.turns
	s.turns = max(turns, in.conv.Turns()) // nothing new is reported of the past
	for i, fate := range reduce.Fates(in.conv.Reminders(), in.conv.Turns(), p.through()) {
		r := in.conv.Reminders()[i]
		if fate == reduce.ReminderExpired && turns > 0 && !r.Expired(turns) {
			out.Expired = append(out.Expired, r.Name())
		}
	}
	if start := *p.result.Start; p.through() > start.State.CollapsedThrough {
		if before, err := in.show(start); err == nil {
			collapsed := in.collapsed(before, p)
			collapsed.Goal, collapsed.KeepLastTurns = in.budget.Share(in.policy.Collapse.To), in.policy.Collapse.KeepLastTurns
			out.Collapsed = &collapsed
		}
	}
	if out.Proposed = in.proposal(reduce.Result{View: p.reduced, State: p.result.State}, req); out.Proposed != nil {
		pipeline, _ := in.pipeline()
		out.Pressure = Pressure{
			Fresh: pipeline.FreshAfter(in.budget, out.Proposed.To), Policy: in.shows.PolicyName(), Messages: p.messages(), Tokens: p.tokens(), Goal: in.budget.Share(in.policy.Collapse.To), KeepLastTurns: in.policy.Collapse.KeepLastTurns,
		}
	}
}

// Material implements summarize.Sessions.
func (e *Engine) Material(ctx context.Context, p summarize.Proposal) (summarize.Material, error) {
	gauge, err := e.opts.Gauges(p.Tokenizer)
	if err != nil {
		return summarize.Material{}, err
	}
	s, release, err := e.sessions.acquire(ctx, p.SessionID)
	if err != nil {
		return summarize.Material{}, err
	}
	defer release()
	s.pinned = p.Of
	conv, err := s.conversation(ctx, e.store, gauge, nil)
	if err != nil {
		return summarize.Material{}, err
	}
	out := summarize.Material{Count: gauge.Text}
	var after eventlog.Seq
	if p.Extends != "" {
		older, err := e.named(ctx, s, p.To, []string{p.Extends})
		if err != nil {
			return summarize.Material{}, err
		}
		out.Older, after = older[0].Text, older[0].To
	}
	if _, err := s.look(ctx, e.store); err != nil {
		return summarize.Material{}, err
	}
	out.Groups = conv.Span(after, p.To)
	pipeline := reduce.NewPipeline(reduce.DefaultPolicy(), conv)
	out.Ledger, out.Index = pipeline.Record(reduce.Span{From: p.From, To: p.To}, recordTarget)
	return out, nil
}

// recordTarget is the target in whose shares the ledger and the index that are kept
// with a summary are written, in tokens.
const recordTarget = 128_000

// Summarized implements summarize.Sessions.
func (e *Engine) Summarized(_ context.Context, sessionID string, _ summarize.Summary) {
	e.sessions.summarize(sessionID)
}
