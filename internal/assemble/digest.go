package assemble

import (
	"context"

	"github.com/contextd/contextd/internal/decide"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
)

// digest returns the digest that was stored last under a fingerprint, so that after a start it need not be
// computed from the whole log; zero if none is stored.
func (s *session) digest(ctx context.Context, store eventlog.Artifacts, fingerprint string, conv *reduce.Conversation) (reduce.Written, error) {
	if w, ok := s.digests.get(fingerprint); ok && w.AsOf <= conv.Head() {
		return w, nil
	}
	w, err := records.DigestAt(ctx, store, s.id, fingerprint, conv.Head())
	if err == nil && conv.Head() == s.head {
		s.digests.put(fingerprint, w, len(w.Text))
	}
	return w, err
}

// newDigest returns the digest that a projection shows; nil if it is stored already. It is stored together with
// the record of the first projection that shows it.
func (e *Engine) newDigest(ctx context.Context, s *session, p decide.Projected, fingerprint string) (*reduce.Written, error) {
	w, ok := p.Conversation.Written(p.Result.View)
	if !ok {
		return nil, nil
	}
	stored, err := s.digest(ctx, e.store, fingerprint, p.Conversation)
	if err != nil || stored.Sum == w.Sum && stored.Text == w.Text {
		return nil, err
	}
	return &w, nil
}
