package assemble

import (
	"context"
	"errors"
	"fmt"

	"github.com/contextd/contextd/internal/decide"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
)

// recompute computes a recorded projection from the log. With a fingerprint it may use the stored digest
// and checkpoint under it; without, it reads the whole log.
func (e *Engine) recompute(ctx context.Context, s *session, r records.Projection, fingerprint string) (decide.Projected, error) {
	if err := r.LoadTexts(ctx, e.store, s.id); err != nil {
		return decide.Projected{}, err
	}
	gauge, err := e.gauge(r.Budget)
	if err != nil {
		return decide.Projected{}, err
	}
	r.Projection = r.Projection.WithScrubber(e.opts.Scrub)
	conv, err := s.shown(ctx, e.store, gauge, &r.AsOf, r.Projection, fingerprint)
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
	if fingerprint != "" {
		if in.Written, err = s.digest(ctx, e.store, fingerprint, conv); err != nil {
			return decide.Projected{}, err
		}
	}
	if _, err := s.look(ctx, e.store); err != nil {
		return decide.Projected{}, err
	}
	run := in.Run
	if fingerprint != "" && r.Projection.PolicyName() == projection.Raw {
		// The state after the run already fixes what is shown, so no earlier digest is needed.
		in.Before = r.After
		run = in.Standing
	}
	p, err := run()
	if errors.Is(err, reduce.ErrIncomplete) {
		return e.recompute(ctx, s, r, "")
	}
	return p, err
}

// Replay computes a recorded projection again from the log and the recorded state. It says whether the bytes are the
// same, or where they first differ. It uses nothing that assemblies cached. If it is called for the projections of a
// session in order, it reads the log once.
func (e *Engine) Replay(ctx context.Context, sessionID, projectionID string) (Replay, error) {
	s, release, err := e.replays.acquire(ctx, sessionID)
	if err != nil {
		return Replay{}, err
	}
	defer release()
	if _, err := s.look(ctx, e.store); err != nil {
		return Replay{}, err
	}
	r, err := records.Get(ctx, e.store, sessionID, projectionID)
	if err != nil {
		return Replay{}, err
	}
	if s.replayed > r.AsOf {
		s.reset() // what it holds only grows
	}
	s.replayed = r.AsOf
	p, err := e.recompute(ctx, s, r, "")
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
	now.Observe(&records.Observation{}, p.Result.View, p.Conversation, p.Reminders)
	out := Replay{Recorded: r, Replayed: now, Messages: messages, Difference: difference(r, now)}
	out.Same = out.Difference == ""
	s.handOver(ctx, messages)
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

// Replay is a recorded projection and the same computed again.
type Replay struct {
	Same               bool
	Recorded, Replayed records.Projection
	// Messages are the messages of Replayed, without injections, which are not recorded.
	Messages   []Message
	Difference string
}
