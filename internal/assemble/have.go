package assemble

import (
	"context"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/records"
)

// maxHeldSearch bounds how many records are looked through for what a caller has.
const maxHeldSearch = 64

// skip takes out of an answer what the caller has already: all of it, if the context
// still begins with it, and else as much as does. Where the daemon does not know what
// the caller has, it sends everything.
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

// held are the messages that a caller has, up to where injections changed them, if a
// recorded projection of the stream begins with them.
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

// newest is what was recorded last in a stream, wherever in the log; zero if nothing was.
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
