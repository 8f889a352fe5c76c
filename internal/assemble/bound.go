package assemble

import (
	"context"

	"github.com/contextd/contextd/internal/decide"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/records"
)

// answerBound is answer for a context that is being decided, without bound reasoning that its provider would
// refuse: before that, something changed since the model wrote it. It is omitted for good, and where that
// changes more of the context, so is what follows.
func (e *Engine) answerBound(ctx context.Context, s *session, in decide.Inputs, p decide.Projected, req Request) (decide.Projected, *Context, encoding, error) {
	for {
		out, laid, err := e.answer(ctx, s, p, req, req.newRecord(in, p, e.opts.Clock()))
		if err != nil || !p.Conversation.Bound() {
			return p, out, laid, err
		}
		gone, err := e.unbound(ctx, s, p, req, out)
		if err != nil || gone == (eventlog.Range{}) || !p.Result.View.ShowsBound(gone) {
			return p, out, laid, err
		}
		in.Before.Unbound = in.Before.Unbound.With(gone)
		if p, err = in.Run(); err != nil {
			return p, nil, encoding{}, err
		}
	}
}

// unbound returns the events whose bound reasoning does not follow what it followed when a model wrote it. Models
// are taken to have seen the recorded contexts, with their injections and reminders.
func (e *Engine) unbound(ctx context.Context, s *session, p decide.Projected, req Request, out *Context) (eventlog.Range, error) {
	before := out.Cache
	at, seen, err := records.Shown(ctx, e.store, s.id, out.AsOf)
	if err != nil {
		return eventlog.Range{}, err
	}
	if req.shadow != nil { // as if all contexts were of the shadow's policy
		at, seen = before.AsOf, before.Shows
	}
	switch {
	case at == 0:
		return unboundAtFirst(p), nil
	case before.AsOf == 0 || before.BrokenBy != "":
		return eventlog.Range{From: 1, To: out.AsOf}, nil
	case before.AsOf == at && before.Shows == seen && before.Whole:
		return eventlog.Range{}, nil
	}
	// What the context before showed of the log is still there. But it showed more after that, or others were
	// recorded since: what models wrote since then followed something else.
	return eventlog.Range{From: before.AsOf + 1, To: out.AsOf}, nil
}

// runFirst computes the first context of a session.
func runFirst(in *decide.Inputs) (decide.Projected, error) {
	p, err := in.Run()
	if err != nil {
		return p, err
	}
	if gone := unboundAtFirst(p); p.Result.View.ShowsBound(gone) {
		in.Before.Unbound = in.Before.Unbound.With(gone)
		p, err = in.Run()
	}
	return p, err
}

// unboundAtFirst is unbound for the first context of a session. Where that shows the log in full, models are
// taken to have seen the log up to what they wrote.
func unboundAtFirst(p decide.Projected) eventlog.Range {
	if p.Result.View.Tokens() == p.Conversation.Tokens() {
		return eventlog.Range{}
	}
	return eventlog.Range{From: 1, To: p.Conversation.Head()}
}
