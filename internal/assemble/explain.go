package assemble

import (
	"context"
	"fmt"

	"github.com/contextd/contextd/internal/explain"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/pointers"
	"github.com/contextd/contextd/internal/records"
)

// Explain says what the model saw of a text, or of the block that a pointer names, in
// a recorded call, number 0 the newest. An empty text asks for the call alone.
// *eventlog.NotFoundError if there is no such session, call or block;
// *eventlog.InvalidError where the call cannot say what was sent.
func (e *Engine) Explain(ctx context.Context, sessionID string, number uint32, text string) (explain.Explanation, error) {
	// A session of its own, so that nothing kept in memory can flatter the answer.
	s := &session{id: sessionID}
	s.reset()
	info, err := s.look(ctx, e.store)
	if err != nil {
		return explain.Explanation{}, err
	}
	call, err := records.GetCall(ctx, e.store, sessionID, number)
	if err != nil {
		return explain.Explanation{}, err
	}
	out := explain.Explanation{Call: call}
	if call.ProjectionID == "" {
		if text != "" {
			return explain.Explanation{}, unknowable("call %d named no projection, so nobody knows what was sent", call.Number)
		}
		return out, nil
	}
	r, err := call.Sent(ctx, e.store)
	if err != nil {
		return explain.Explanation{}, err
	}
	out.Projection = &r
	p, err := e.again(ctx, s, r)
	if err != nil {
		return explain.Explanation{}, err
	}
	out.Pointers = new(pointers.Described).Facts(r.Pointers, p.conv.Groups())
	if text == "" {
		return out, nil
	}
	x := explain.Context{SessionID: sessionID, Record: r, Conversation: p.conv, Result: p.result, Head: info.Head}
	if r.After.Summary != "" {
		if x.Summary, err = e.summaryInForce(ctx, s, p.conv, r); err != nil {
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
	if other := difference(r, remade(r, p, x.Messages)); other != "" {
		return explain.Explanation{}, unknowable("the context of call %d cannot be rebuilt (%s)", call.Number, other)
	}
	if out.Seen, out.Sightings, err = explain.Find(ctx, e.store, x, text); err == nil {
		_, err = s.look(ctx, e.store)
	}
	return out, err
}

// remade is the record with what its projection came out as this time.
func remade(r records.Projection, p projected, messages []Message) records.Projection {
	r.PrefixHash, r.MessageCount, r.Tokens = hashOf(messages), len(messages), p.tokens()
	return r
}

// unknowable refuses a text, not the call: without one the call can be explained.
func unknowable(format string, args ...any) error {
	return &eventlog.InvalidError{Field: "text", Reason: fmt.Sprintf(format, args...)}
}
