package assemble

import (
	"context"
	"time"

	"github.com/contextd/contextd/internal/decide"
	"github.com/contextd/contextd/internal/lifecycle"
	"github.com/contextd/contextd/internal/records"
)

// record stores the projection of an answer, durable on return: with the lifecycle events that report it,
// or as a shadow if shadow is set.
func (e *Engine) record(ctx context.Context, s *session, p decide.Projected, out *Context, laid encoding, shadow *Shadow) error {
	known, err := s.knownReminders(ctx, e.store)
	if err != nil {
		return err
	}
	reminders, known := p.ReminderNews(known)
	r := &out.Projection
	// These go into the record so that a fork at this event starts with what the watchers knew here.
	r.RemindersTurns, r.RemindersCollapsed = p.Conversation.Turns(), min(known.Collapsed, r.AsOf)
	if r.ID, err = records.NextID(ctx, e.store, s.id, r.AsOf); err != nil {
		return err
	}
	all, err := r.Prepare(ctx, e.store, s.id, s.of)
	if err != nil {
		return err
	}
	digest, err := e.newDigest(ctx, s, p, r.Fingerprint)
	if err != nil {
		return err
	}
	checkpoint, checkpointSum, err := e.newCheckpoint(ctx, s, p, r.Fingerprint)
	if err != nil {
		return err
	}
	all = append(all, checkpoint...)
	if digest != nil {
		a, err := records.DigestArtifact(r.Fingerprint, *digest)
		if err != nil {
			return err
		}
		all = append(all, a)
	}
	s.computing.End() // give up the processor while waiting for the disk
	if shadow != nil {
		err = e.recordShadow(ctx, s, *shadow, out, all)
	} else {
		err = e.opts.Journal.Put(ctx, lifecycle.Entry{SessionID: s.id, Of: s.of, Events: out.news(reminders), Artifacts: all})
	}
	if err != nil {
		return err
	}
	s.known = &known
	if digest != nil && r.AsOf == s.head {
		s.digests.put(r.Fingerprint, *digest, len(digest.Text))
	}
	if len(checkpoint) > 0 {
		s.checkpoints.put(r.Fingerprint, checkpointSum, len(checkpointSum))
	}
	s.remember(*r, laid, p.Conversation)
	return nil
}

// newRecord makes the record of the projection that a request leads to; it has no ID yet.
func (r Request) newRecord(in decide.Inputs, p decide.Projected, at time.Time) records.Projection {
	out := in.Record(p, at)
	out.Reason, out.IdempotencyKey, out.RequestDigest = r.Policy.Reason, r.IdempotencyKey, r.Digest
	return out
}
