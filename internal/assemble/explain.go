package assemble

import (
	"context"
	"errors"
	"fmt"

	"github.com/contextd/contextd/internal/decide"
	"github.com/contextd/contextd/internal/explain"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/pointers"
	"github.com/contextd/contextd/internal/records"
)

// Asked names the context to be explained: by the number of a recorded call (0 is the newest), or by the id
// of a recorded projection.
type Asked struct {
	Call       uint32
	Projection string
}

// Explain says what the model saw of a text, or of the block that a pointer names, in the context that asked names.
// If that is call 0 and no call is recorded, it uses the newest projection or, if there is none, the context of
// preview. With an empty text it returns only the call and its projection. *eventlog.NotFoundError if there is no
// such session, call or block; *eventlog.InvalidError if what was sent cannot be known.
func (e *Engine) Explain(ctx context.Context, sessionID string, asked Asked, text string, preview Request) (explain.Explanation, error) {
	s, release := e.sessions.apart(sessionID)
	defer release()
	s.whole = true
	info, err := s.look(ctx, e.store)
	if err != nil {
		return explain.Explanation{}, err
	}
	call, r, p, err := e.explained(ctx, s, asked, preview)
	if err != nil {
		return explain.Explanation{}, err
	}
	out := explain.Explanation{Call: call}
	if call.Number > 0 && call.ProjectionID == "" {
		if text != "" {
			return explain.Explanation{}, unknowable("call %d named no projection, so nobody knows what was sent", call.Number)
		}
		return out, nil
	}
	out.Projection = &r
	out.Pointers = new(pointers.Described).Facts(r.Pointers, p.Conversation.Groups())
	if text == "" {
		return out, nil
	}
	x := explain.Context{SessionID: sessionID, Record: r, Conversation: p.Conversation, Result: p.Result, Head: info.Head}
	if r.After.Summary != "" {
		if x.Summary, err = e.summaryInForce(ctx, s, p.Conversation, r); err != nil {
			return explain.Explanation{}, err
		}
	}
	f, err := format(r)
	if err != nil {
		return explain.Explanation{}, err
	}
	x.Messages = s.encode(p, f).messages
	if err := ctx.Err(); err != nil {
		return explain.Explanation{}, err
	}
	if other := difference(r, e.remade(r, p, x.Messages)); other != "" && r.ID != "" {
		return explain.Explanation{}, unknowable("projection %s cannot be rebuilt (%s)", r.ID, other)
	}
	if out.Seen, out.Sightings, err = explain.Find(ctx, e.store, x, text); err == nil {
		_, err = s.look(ctx, e.store)
	}
	return out, err
}

// explained returns the call that asked names, the record of the projection that was sent, and that projection
// computed again; call and record are zero if they are not recorded.
func (e *Engine) explained(ctx context.Context, s *session, asked Asked, preview Request) (call records.ModelCall, r records.Projection, p decide.Projected, err error) {
	if asked.Projection != "" {
		if r, err = records.Get(ctx, e.store, s.id, asked.Projection); err == nil {
			p, err = e.recompute(ctx, s, r, "")
		}
		return call, r, p, err
	}
	call, err = records.GetCall(ctx, e.store, s.id, asked.Call)
	var missing *eventlog.NotFoundError
	switch {
	case asked.Call == 0 && errors.As(err, &missing):
		var id string
		if id, err = records.Newest(ctx, e.store, s.id); err != nil {
			return call, r, p, err
		}
		if id == "" {
			r, p, err = e.previewed(ctx, s, preview)
			return call, r, p, err
		}
		r, err = records.Get(ctx, e.store, s.id, id)
	case err == nil && call.ProjectionID != "":
		r, err = call.Sent(ctx, e.store)
	default:
		return call, r, p, err
	}
	if err == nil {
		p, err = e.recompute(ctx, s, r, "")
	}
	return call, r, p, err
}

// previewed computes a context that is not recorded.
func (e *Engine) previewed(ctx context.Context, s *session, req Request) (r records.Projection, p decide.Projected, err error) {
	in, _, err := e.gather(ctx, s, req)
	if err != nil {
		return r, p, err
	}
	p, err = runFirst(&in)
	if err != nil {
		return r, p, err
	}
	return req.newRecord(in, p, e.opts.Clock()), p, nil
}

// remade returns record r with the hash, count and tokens of the messages that were computed now.
func (e *Engine) remade(r records.Projection, p decide.Projected, messages []Message) records.Projection {
	r.Projection = r.Projection.WithScrubber(e.opts.Scrub)
	r.PrefixHash, r.MessageCount, r.Tokens = hashOf(messages), len(messages), p.Tokens()
	return r
}

// unknowable returns the error about a text that cannot be looked for; without a text the call can be explained.
func unknowable(format string, args ...any) error {
	return &eventlog.InvalidError{Field: "text", Reason: fmt.Sprintf(format, args...)}
}
