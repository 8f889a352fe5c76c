package assemble

import (
	"context"
	"fmt"

	"github.com/contextd/contextd/internal/decide"
	"github.com/contextd/contextd/internal/records"
)

// again computes a recorded projection from the log.
func (e *Engine) again(ctx context.Context, s *session, r records.Projection) (decide.Projected, error) {
	if err := r.LoadTexts(ctx, e.store, s.id); err != nil {
		return decide.Projected{}, err
	}
	gauge, err := e.gauge(r.Budget)
	if err != nil {
		return decide.Projected{}, err
	}
	r.Projection = r.Projection.WithScrubber(e.opts.Scrub)
	conv, err := s.shown(ctx, e.store, gauge, &r.AsOf, r.Projection)
	if err != nil {
		return decide.Projected{}, err
	}
	in := decide.Inputs{
		Ctx: ctx, Conversation: conv, Reduction: r.Reduction, Budget: r.Budget, Before: r.Before, Ask: r.Ask,
		Projection: r.Projection, ShownBefore: r.ShownBefore,
	}
	if in.Policy, err = s.projector(r.Projection.WithLive(conv), r.Reduction.Recall); err != nil {
		return decide.Projected{}, err
	}
	if in.Summaries, err = e.named(ctx, s, r.AsOf, r.Summaries); err != nil {
		return decide.Projected{}, err
	}
	if _, err := s.look(ctx, e.store); err != nil {
		return decide.Projected{}, err
	}
	return in.Run()
}

// Replay computes a recorded projection again from the log and the recorded state
// and says whether it gives the same bytes, or where it first differs.
func (e *Engine) Replay(ctx context.Context, sessionID, projectionID string) (Replay, error) {
	// A session of its own, so that nothing kept in memory can flatter the answer.
	s := &session{id: sessionID}
	s.reset()
	if _, err := s.look(ctx, e.store); err != nil {
		return Replay{}, err
	}
	r, err := records.Get(ctx, e.store, sessionID, projectionID)
	if err != nil {
		return Replay{}, err
	}
	p, err := e.again(ctx, s, r)
	if err != nil {
		return Replay{}, err
	}
	f, err := format(r)
	if err != nil {
		return Replay{}, err
	}
	messages := s.encode(p, f).messages
	if err := ctx.Err(); err != nil {
		return Replay{}, err
	}
	now := e.remade(r, p, messages)
	now.After, now.Steps, now.Pointers = p.Result.State, p.Result.Steps, nil
	now.Observe(p.Result.View, p.Conversation, p.Reminders)
	out := Replay{Recorded: r, Replayed: now, Messages: messages, Difference: difference(r, now)}
	out.Same = out.Difference == ""
	return out, nil
}

func difference(a, b records.Projection) string {
	switch {
	case a.PrefixHash != b.PrefixHash && a.Projection.ScrubRules != b.Projection.ScrubRules:
		return "scrub_patterns: credentials are found by other rules than when it was recorded"
	case a.MessageCount != b.MessageCount:
		return fmt.Sprintf("message_count: recorded %d, replayed %d", a.MessageCount, b.MessageCount)
	case a.Tokens != b.Tokens:
		return fmt.Sprintf("tokens: recorded %d, replayed %d", a.Tokens, b.Tokens)
	case a.PrefixHash != b.PrefixHash:
		return fmt.Sprintf("prefix_hash: recorded %s, replayed %s", a.PrefixHash, b.PrefixHash)
	default:
		return ""
	}
}
