package assemble

import (
	"bytes"
	"context"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/decide"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
)

// gather reads all inputs that decide a context, or returns as earlier the record that was made for the
// request's idempotency key.
func (e *Engine) gather(ctx context.Context, s *session, req Request) (in decide.Inputs, earlier *records.Projection, err error) {
	if err := checkPolicy(req.Policy); err != nil {
		return in, nil, err
	}
	req.Policy.Projection = req.Policy.Projection.WithScrubber(e.opts.Scrub)
	b, gauge, err := e.resolve(req.Budget)
	if err != nil {
		return in, nil, err
	}
	s.answers = true
	fingerprint := e.fingerprint(req.Policy, b)
	conv, err := s.shown(ctx, e.store, gauge, req.AsOf, req.Policy.Projection, fingerprint)
	if err != nil {
		return in, nil, err
	}
	if err := s.index(ctx, e.store); err != nil {
		return in, nil, err
	}
	if req.IdempotencyKey != "" {
		if r, ok, err := e.recordByKey(ctx, s, req); ok || err != nil {
			return in, &r, err
		}
	}
	learnt, rejected, err := records.Calibration(ctx, e.store, req.SessionID, conv.Head(), b)
	if err != nil {
		return in, nil, err
	}
	b = b.Calibrated(learnt)
	if in, err = e.inputs(ctx, s, conv, b, req.Policy, fingerprint); err != nil {
		return in, nil, err
	}
	in.Ask.Rejected = rejected // what a provider rejected: the window may be smaller than the caller thinks
	_, err = s.look(ctx, e.store)
	return in, nil, err
}

// inputs gathers what a decision depends on from the conversation, the records and the other artifacts.
func (e *Engine) inputs(ctx context.Context, s *session, conv *reduce.Conversation, b budget.Budget, p Policy, fingerprint string) (decide.Inputs, error) {
	in := decide.Inputs{
		Ctx: ctx, SessionID: s.id, Of: s.of, Conversation: conv, Reduction: e.reduction(p, b), Budget: b,
		Projection: p.Projection, Summarizing: p.Summaries, Fingerprint: fingerprint,
	}
	var err error
	if in.Policy, err = s.projector(in.Projection.WithLive(conv), in.Reduction.Recall); err != nil {
		return in, err
	}
	last, err := records.DecisionsAt(ctx, e.store, s.id, in.Fingerprint, conv)
	if err != nil {
		return in, err
	}
	in.Before, in.ShownBefore = last.Reduction, last.Shown
	in.Observed = s.observation(in.Fingerprint)
	if in.Written, err = s.digest(ctx, e.store, in.Fingerprint, conv); err != nil {
		return in, err
	}
	in.Summaries, err = e.offered(ctx, s, in)
	return in, err
}

// recordByKey finds the record of the request's idempotency key, at whatever event it was made.
func (e *Engine) recordByKey(ctx context.Context, s *session, req Request) (r records.Projection, ok bool, err error) {
	id, err := records.ByKey(ctx, e.store, s.id, req.IdempotencyKey)
	if id == "" || err != nil {
		return r, false, err
	}
	if r, err = records.Get(ctx, e.store, s.id, id); err != nil {
		return r, false, err
	}
	if len(r.RequestDigest) > 0 && !bytes.Equal(r.RequestDigest, req.Digest) {
		return r, false, &records.KeyConflictError{Key: req.IdempotencyKey, Kind: records.KeyedProjection, Name: r.ID}
	}
	return r, true, nil
}
