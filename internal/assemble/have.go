package assemble

import (
	"context"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/records"
)

// maxHeldSearch bounds how many records are searched for the prefix that a caller has.
const maxHeldSearch = 64

// skip removes from an answer the first messages that the caller has already: all of them if they are still a prefix
// of the context, else as many as are the same. If no recorded projection explains what the caller has, everything is
// sent.
func (e *Engine) skip(ctx context.Context, s *session, out *Context, have Have) error {
	n := have.MessageCount
	if n == 0 {
		return nil
	}
	if n <= len(out.Messages) && hashOf(out.Messages[:n]) == have.PrefixHash {
		out.Skipped, out.Messages = n, out.Messages[n:]
		return nil
	}
	held, err := e.held(ctx, s, out.Projection, have)
	if err != nil {
		return err
	}
	if held == nil {
		out.Broken = &Break{Cause: CauseUnknown}
		return nil
	}
	at := common(held, out.Messages)
	out.Broken = &Break{Index: at, Cause: breaker(out.Messages, at)}
	switch {
	case at == len(held):
		out.Broken.Cause = causeInjections
	case held[at].Passing:
		out.Broken.Cause = causeReminders
	}
	out.Skipped, out.Messages = at, out.Messages[at:]
	return nil
}

// held returns the messages that a caller has, up to the first that injections changed. They are found by
// hash among the recorded projections; nil if none of those begins with them.
func (e *Engine) held(ctx context.Context, s *session, now records.Projection, have Have) ([]Message, error) {
	begins := func(messages []Message) []Message {
		if have.MessageCount <= len(messages) && hashOf(messages[:have.MessageCount]) == have.PrefixHash {
			return messages[:have.MessageCount]
		}
		return nil
	}
	last, err := e.newest(ctx, s, now.Stream())
	if err != nil {
		return nil, err
	}
	if held := begins(last.messages); held != nil {
		return held, nil
	}
	if now.AsOf == 0 { // nothing was shown at 0
		return nil, nil
	}
	looked := 0
	for r, err := range records.Projections(ctx, e.store, s.id, eventlog.ArtifactQuery{To: now.AsOf, Reverse: true}) {
		if err != nil {
			return nil, err
		}
		injected := r.ContextHash == have.PrefixHash && r.ContextMessages == have.MessageCount
		if !injected && (r.PrefixHash != have.PrefixHash || r.MessageCount != have.MessageCount) {
			if looked++; looked == maxHeldSearch {
				break
			}
			continue
		}
		old, err := e.encodeAgain(ctx, s, r)
		switch {
		case err != nil:
			return nil, err
		case injected && r.PrefixMessages <= len(old.messages):
			return old.messages[:r.PrefixMessages], nil
		default:
			return begins(old.messages), nil
		}
	}
	return nil, nil
}

// newest returns the projection recorded last in a stream, at any event; zero if there is none.
func (e *Engine) newest(ctx context.Context, s *session, stream string) (lastProjection, error) {
	id, err := records.InStream(ctx, e.store, s.id, stream, 0)
	if id == "" || err != nil {
		return lastProjection{}, err
	}
	if last, ok := s.last.get(stream); ok && last.record.ID == id {
		return last, nil
	}
	r, err := records.Get(ctx, e.store, s.id, id)
	if err != nil {
		return lastProjection{}, err
	}
	return e.encodeAgain(ctx, s, r)
}
