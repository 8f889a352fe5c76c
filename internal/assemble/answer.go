package assemble

import (
	"context"

	"github.com/contextd/contextd/internal/decide"
	"github.com/contextd/contextd/internal/records"
)

// repeat answers a request whose idempotency key was used before, with the projection recorded then.
func (e *Engine) repeat(ctx context.Context, s *session, req Request, r records.Projection) (*Context, error) {
	p, err := e.recompute(ctx, s, r, "")
	if err != nil {
		return nil, err
	}
	out, _, err := e.answer(ctx, s, p, req, r)
	if err != nil {
		return nil, err
	}
	_, err = s.look(ctx, e.store)
	return out, err
}

// answer builds the answer and compares it with the projection before it in its stream. The encoding that
// it also returns is what the prefix hash covers: the messages without injections.
func (e *Engine) answer(ctx context.Context, s *session, p decide.Projected, req Request, record records.Projection) (*Context, encoding, error) {
	var err error
	if record.Previous, err = e.previous(ctx, s, record); err != nil {
		return nil, encoding{}, err
	}
	out, laid, err := build(s, p, req, record)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, encoding{}, err
	}
	if out.Cache, err = e.compare(ctx, s, laid, out.Projection); err != nil {
		return nil, encoding{}, err
	}
	if r := &out.Projection; r.Previous != "" && r.ID == "" {
		r.Shared = &records.Shared{Messages: out.Cache.StableMessages, Tokens: out.Cache.StableTokens, BrokenBy: out.Cache.BrokenBy}
	}
	out.cacheHints(e.opts.Namespace)
	return out, laid, e.skip(ctx, s, out, req.Have)
}

// build encodes and hashes a projection. The encoding that it also returns is what the prefix hash covers.
func build(s *session, p decide.Projected, req Request, record records.Projection) (*Context, encoding, error) {
	f, err := format(record)
	if err != nil {
		return nil, encoding{}, err
	}
	injected, err := injections(p.Conversation.Gauge(), record.Budget, req.Injections)
	if err != nil {
		return nil, encoding{}, err
	}
	for i := range injected {
		record.Injected += injected[i].Tokens
	}
	encoded := s.encode(p, f)
	all, same := encoded.with(injected)
	out := &Context{SessionID: req.SessionID, Of: s.of, AsOf: record.AsOf, MessageCount: len(all), PrefixMessages: same}
	out.Messages = all
	out.PrefixHash = encoded.hash
	out.ContextHash = out.PrefixHash
	if len(injected) > 0 {
		out.ContextHash = hashOf(all)
		record.ContextHash, record.ContextMessages, record.PrefixMessages = out.ContextHash, len(all), same
	}
	record.PrefixHash, record.MessageCount = out.PrefixHash, len(encoded.messages)
	record.Raw, record.Tiers = p.Conversation.Tokens(), withReminders(encoded.tiers, p.Reminders)
	out.Projection, out.Budget = record, Recorded(record)
	if len(record.Pointers) == 0 {
		s.described = nil
	} else {
		out.Pointers = s.described.Facts(record.Pointers, p.Result.View.Groups())
	}
	return out, encoded, nil
}

// previous returns the id of the projection that record r is compared with. A record that is stored already
// (it has an ID) names it; for a new one it is the newest of its stream at r.AsOf or before.
func (e *Engine) previous(ctx context.Context, s *session, r records.Projection) (string, error) {
	if r.ID != "" || r.AsOf == 0 { // nothing was shown at 0
		return r.Previous, nil
	}
	if last, ok := s.last.get(r.Stream()); ok && last.record.AsOf <= r.AsOf && !e.sessions.shared {
		return last.record.ID, nil
	}
	return records.InStream(ctx, e.store, s.id, r.Stream(), r.AsOf)
}
