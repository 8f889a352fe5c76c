package disklog

import (
	"context"

	"github.com/cockroachdb/pebble/v2"

	eventlog "github.com/contextd/contextd/internal/log"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

// Fork makes a session that shares its parent's segments.
func (s *Store) Fork(ctx context.Context, r eventlog.ForkRequest) (_ eventlog.Session, err error) {
	defer inSession(r.ParentID, &err)
	if err := s.enterToAdd(ctx); err != nil {
		return eventlog.Session{}, err
	}
	defer s.leave()
	parentSlot, parent, err := s.find(r.ParentID)
	if err != nil {
		return eventlog.Session{}, err
	}
	defer s.release(parentSlot)
	if err := r.Validate(parent.head()); err != nil {
		return eventlog.Session{}, err
	}
	if r.NewID == r.ParentID {
		return eventlog.Session{}, &eventlog.ExistsError{Kind: "session", Name: r.NewID}
	}
	childSlot, err := s.acquire(r.NewID)
	if err != nil {
		return eventlog.Session{}, err
	}
	defer s.release(childSlot)
	made, c, err := s.fork(parentSlot, childSlot, parent, r)
	return s.created(ctx, made, c, err)
}

// fork makes a fork and also returns the new session, because soon after that the child's slot may have another
// session or none.
func (s *Store) fork(parentSlot, childSlot *slot, parent *session, r eventlog.ForkRequest) (*session, *commit, error) {
	first, second := parentSlot, childSlot
	if second.id < first.id {
		first, second = second, first
	}
	first.mu.Lock()
	defer first.mu.Unlock()
	second.mu.Lock()
	defer second.mu.Unlock()
	if parentSlot.session.Load() != parent {
		return nil, nil, eventlog.NoSession(r.ParentID)
	}
	at, err := s.forkPoint(parent, r.At)
	if err != nil {
		return nil, nil, err
	}
	from := parent.info
	from.ID, from.ParentID, from.ForkSeq, from.CreateTime = r.NewID, r.ParentID, r.At, r.Time
	from.ArtifactBytes = parent.puts.bytes
	if r.Labels != nil {
		from.Labels = r.Labels
	}
	c, err := s.create(childSlot, from, parent.share(r.At), at, parent.freeze, parentSlot)
	if err == nil {
		parent.last = c
	}
	return childSlot.session.Load(), c, err
}

// forkPoint returns the state after an event. The slot's mu is held.
func (s *Store) forkPoint(parent *session, at eventlog.Seq) (state, error) {
	if at == parent.at.head.Seq {
		return parent.at, nil
	}
	return s.stateAt(parent.links, at)
}

// share returns the links of a fork at seq.
func (s *session) share(at eventlog.Seq) []link {
	if at == 0 {
		return nil
	}
	var shared []link
	for _, l := range s.links {
		if l.owned() {
			l.puts = s.puts.last
		}
		l.upTo = min(l.upTo, at)
		if l.upTo > l.base || l.puts > 0 {
			shared = append(shared, l)
		}
	}
	return shared
}

// freeze marks all artifacts put so far as shared with a fork, so that later puts keep these versions.
func (s *session) freeze(batch *pebble.Batch) error {
	if s.puts.frozen == s.puts.last {
		return nil
	}
	put := s.puts
	put.frozen = put.last
	s.puts = put
	return putPuts(batch, s.own().segment, put)
}

func putPuts(batch *pebble.Batch, segment segmentID, put puts) error {
	key := putsKey(segment)
	value, err := encode(key, keyPuts, &storagev1.Puts{Last: put.last, Frozen: put.frozen, Bytes: put.bytes})
	if err != nil {
		return err
	}
	return batch.Set(key, value, nil)
}
