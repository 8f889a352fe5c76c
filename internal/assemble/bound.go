package assemble

import (
	"context"

	"github.com/contextd/contextd/internal/decide"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
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
		seen, err := e.seen(ctx, s, req, out, laid)
		if err != nil || !in.Unbind(p, seen) {
			return p, out, laid, err
		}
		if p, err = in.Run(); err != nil {
			return p, nil, encoding{}, err
		}
	}
}

// runFirst computes the first context of a session.
func runFirst(in *decide.Inputs) (decide.Projected, error) {
	p, err := in.Run()
	for err == nil && in.Unbind(p, reduce.Seen{}) {
		p, err = in.Run()
	}
	return p, err
}

// seen returns which part of a context models saw. They are taken to have seen the recorded contexts, with their
// injections and reminders.
func (e *Engine) seen(ctx context.Context, s *session, req Request, out *Context, laid encoding) (reduce.Seen, error) {
	before := out.Cache
	at, shown, err := records.Shown(ctx, e.store, s.id, out.AsOf)
	if err != nil {
		return reduce.Seen{}, err
	}
	if req.shadow != nil { // as if all contexts were of the shadow's policy
		at, shown = before.AsOf, before.Shows
	}
	switch {
	case at == 0:
		return reduce.Seen{}, nil
	case before.AsOf == 0:
		return reduce.Seen{Other: true}, nil
	}
	last := before.AsOf == at && before.Shows == shown && before.Whole
	return reduce.Seen{AsOf: before.AsOf, From: firstPlace(laid.messages[before.StableMessages:]), Other: !last}, nil
}

// firstPlace returns the place of the first block of messages that is from the log; zero if there is none.
func firstPlace(messages []Message) eventlog.Place {
	for i := range messages {
		for _, place := range messages[i].Places {
			if place.Seq > 0 {
				return place
			}
		}
	}
	return eventlog.Place{}
}
