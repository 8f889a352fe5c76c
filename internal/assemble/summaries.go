package assemble

import (
	"cmp"
	"context"
	"slices"

	"github.com/contextd/contextd/internal/decide"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/summarize"
)

// offered returns the summaries that a projection may quote, oldest first: the one in use and the newest.
func (e *Engine) offered(ctx context.Context, s *session, in decide.Inputs) ([]summarize.Summary, error) {
	if in.Before.Summary == "" && in.Reduction.Collapse.StartAt == 0 && in.Caller.Strategy != reduce.Summarize {
		return nil, nil
	}
	var ids []string
	newest, err := e.newestSummary(ctx, s, in.Conversation)
	if newest != nil {
		ids = append(ids, newest.ID)
	}
	if in.Before.Summary != "" && (newest == nil || in.Before.Summary != newest.ID) {
		ids = append(ids, in.Before.Summary)
	}
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	out := make([]summarize.Summary, 0, len(ids))
	for _, id := range ids {
		found, err := e.summary(ctx, s, in.Conversation.Head(), id)
		if eventlog.IsMissing(err, "summary") {
			continue // a copied log may have it in the compaction alone
		}
		if err != nil {
			return nil, err
		}
		out = append(out, found)
	}
	slices.SortFunc(out, func(a, b summarize.Summary) int { return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(a.ID, b.ID)) })
	return out, nil
}

// newestSummary returns the newest summary, without its texts, of those that the conversation may quote; nil if there
// is none. It reads no more of them than it must: a long session has many.
func (e *Engine) newestSummary(ctx context.Context, s *session, conv *reduce.Conversation) (newest *summarize.Summary, err error) {
	for i := 0; ; i++ {
		if i == len(s.summaries) {
			if err := e.moreSummaries(ctx, s); err != nil || i == len(s.summaries) {
				return newest, err
			}
		}
		of := &s.summaries[i]
		switch {
		case of.To > conv.Head():
		case of.Summarizer == summarize.Caller && decide.DecidedSummary(conv, of.ID) == nil:
			// A caller's summary holds only while its compaction is in force.
		case newest == nil || of.To == newest.To && of.Time.After(newest.Time):
			newest = of
		case of.To < newest.To:
			return newest, nil
		}
	}
}

// moreSummaries reads more of the list of the session's summaries.
func (e *Engine) moreSummaries(ctx context.Context, s *session) error {
	const atOnce = 4
	if s.allSummaries {
		return nil
	}
	var last summarize.Summary
	if n := len(s.summaries); n > 0 {
		last = s.summaries[n-1]
	}
	read := 0
	for of, err := range summarize.NewestFirst(ctx, e.store, s.id, last.To, last.ID) {
		if err != nil {
			return err
		}
		s.quoted.put(of.ID, of, sizeOf(of))
		of.Text, of.Ledger, of.Index = "", "", ""
		s.summaries = append(s.summaries, of)
		if read++; read == atOnce {
			return nil
		}
	}
	s.allSummaries = true
	return nil
}

// sizeOf returns how many bytes of text a summary has.
func sizeOf(of summarize.Summary) int { return len(of.Text) + len(of.Ledger) + len(of.Index) }

// summary returns the summary with an id, of a span that ends at upTo or before, or *eventlog.NotFoundError.
func (e *Engine) summary(ctx context.Context, s *session, upTo eventlog.Seq, id string) (summarize.Summary, error) {
	of, ok := s.quoted.get(id)
	if !ok {
		var err error
		if of, err = summarize.Get(ctx, e.store, s.id, id); err != nil {
			return of, err
		}
		s.quoted.put(id, of, sizeOf(of))
	}
	if of.To > upTo {
		return of, &eventlog.NotFoundError{Kind: "summary", Name: id}
	}
	return of, nil
}

// named returns the summaries with these ids, or *eventlog.NotFoundError.
func (e *Engine) named(ctx context.Context, s *session, asOf eventlog.Seq, ids []string) ([]summarize.Summary, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	out := make([]summarize.Summary, len(ids))
	for i, id := range ids {
		var err error
		if out[i], err = e.summary(ctx, s, asOf, id); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// summaryInForce returns the summary that a record's context quotes.
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
