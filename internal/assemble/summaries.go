package assemble

import (
	"context"
	"slices"

	"github.com/contextd/contextd/internal/decide"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/summarize"
)

// offered returns the summaries that a projection may quote: the one in use and the
// newest.
func (e *Engine) offered(ctx context.Context, s *session, in decide.Inputs) ([]summarize.Summary, error) {
	if in.Before.Summary == "" && in.Reduction.Collapse.StartAt == 0 && in.Caller.Strategy != reduce.Summarize {
		return nil, nil
	}
	all, err := e.summariesOf(ctx, s, in.Conversation.Head())
	if err != nil {
		return nil, err
	}
	newest := -1
	for i := range all {
		if all[i].Summarizer == summarize.Caller && decide.DecidedSummary(in.Conversation, all[i].ID) == nil {
			continue // a caller's summary holds only while its compaction is in force
		}
		if newest < 0 || all[i].To > all[newest].To || all[i].To == all[newest].To && !all[i].Time.Before(all[newest].Time) {
			newest = i
		}
	}
	var out []summarize.Summary
	for i := range all {
		if i == newest || all[i].ID == in.Before.Summary {
			out = append(out, all[i])
		}
	}
	return out, nil
}

// summariesOf returns the summaries of spans that end at upTo or before, oldest first.
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
	if decided := decide.DecidedSummary(conv, r.After.Summary); decided != nil {
		return decided, nil
	}
	return nil, err
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
	conv, err := s.conversation(ctx, e.store, gauge, nil, projection.Options{}, "")
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
	out.Groups, out.Reminders = conv.Span(after, p.To), conv.Pending(p.To)
	pipeline := reduce.NewPipeline(reduce.DefaultPolicy(), conv)
	out.Ledger, out.Index = pipeline.Record(reduce.Span{From: p.From, To: p.To}, recordTarget)
	return out, nil
}

// recordTarget is the target, in tokens, from which the sizes of the ledger and the index stored with a
// summary are computed.
const recordTarget = 128_000

// Summarized implements summarize.Sessions.
func (e *Engine) Summarized(_ context.Context, sessionID string, _ summarize.Summary) {
	e.forgetSummaries(sessionID)
}
