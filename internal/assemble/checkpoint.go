package assemble

import (
	"context"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/decide"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
)

// begun returns the log up to an event as a conversation that begins at the newest checkpoint under a fingerprint:
// the groups that the digest replaces are not read. It is nil if there is no checkpoint, if the request needs the
// whole log, or if the checkpoint does not match the log.
func (s *session) begun(ctx context.Context, store Store, gauge budget.Gauge, to eventlog.Seq, policy projection.Options, fingerprint string) (*reduce.Conversation, error) {
	if fingerprint == "" || s.whole || policy.Scrub || policy.Name == projection.HarnessView || policy.Name == projection.Full {
		return nil, nil
	}
	checkpoint, ok, err := records.CheckpointAt(ctx, store, s.id, fingerprint, to)
	if !ok || err != nil {
		return nil, err
	}
	used, ok, err := records.NamesUpTo(ctx, store, s.id, checkpoint.AsOf)
	if !ok || err != nil {
		return nil, err
	}
	// It reads the groups that are shown, and all events after the checkpoint.
	if err := s.reserve(ctx, checkpoint.AsOf-min(checkpoint.AsOf, eventlog.Seq(checkpoint.Shown.Len())), to); err != nil {
		return nil, err
	}
	if err := s.computing.Begin(ctx); err != nil {
		return nil, err
	}
	conv := policy.NewConversation(gauge)
	conv.Begin(checkpoint, used)
	for event, err := range eventlog.ReadRuns(ctx, store, s.id, checkpoint.Shown) {
		if err != nil {
			return nil, err
		}
		conv.Append(event)
	}
	if !conv.Settle() {
		return nil, nil
	}
	return conv, nil
}

// newCheckpoint returns the checkpoint of a projection's digest as artifacts, and its checksum. There are no
// artifacts if that checkpoint is stored already, or if no conversation could begin at it.
func (e *Engine) newCheckpoint(ctx context.Context, s *session, p decide.Projected, fingerprint string) (all []eventlog.Artifact, sum [32]byte, err error) {
	sum, ok := p.Conversation.CheckpointSum(p.Result.View)
	if !ok || p.Conversation.Head() != s.head {
		return nil, sum, nil
	}
	stored, known := s.checkpoints.get(fingerprint)
	if !known {
		f, _, err := records.CheckpointAt(ctx, e.store, s.id, fingerprint, s.head)
		if err != nil {
			return nil, sum, err
		}
		stored = f.Sum
		s.checkpoints.put(fingerprint, stored, len(stored))
	}
	if stored == sum {
		return nil, sum, nil
	}
	checkpoint, ok := p.Conversation.Checkpoint(p.Result.View)
	if !ok {
		return nil, sum, nil
	}
	if all, err = records.NamesArtifacts(ctx, e.store, s.id, p.Conversation); err != nil {
		return nil, sum, err
	}
	a, err := records.CheckpointArtifact(fingerprint, checkpoint)
	return append(all, a), sum, err
}
