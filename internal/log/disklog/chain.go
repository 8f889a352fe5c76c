package disklog

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	eventlog "github.com/contextd/contextd/internal/log"
)

// ChainHead returns the chain after an event, from the event's record.
func (s *Store) ChainHead(ctx context.Context, id string, seq eventlog.Seq) (_ []byte, err error) {
	defer inSession(id, &err)
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	sl, found, err := s.find(id)
	if err != nil {
		return nil, err
	}
	defer s.release(sl)
	switch {
	case seq > found.head():
		return nil, eventlog.NoEvent(seq)
	case seq == 0:
		return nil, nil
	}
	for _, l := range slices.Backward(found.links) {
		if seq > l.base && seq <= l.upTo {
			chain, err := s.chainIn(l, seq)
			if err != nil {
				err = cmp.Or(found.deleted(ctx), err)
			}
			return chain, err
		}
	}
	return nil, &eventlog.CorruptError{What: describeKey(sessionKey(id)), Reason: "its links leave out an event"}
}

func (s *Store) chainIn(l link, seq eventlog.Seq) ([]byte, error) {
	key := eventKey(l.segment, seq)
	value, closer, err := s.get(key)
	switch {
	case errors.Is(err, pebble.ErrNotFound):
		return nil, missing(l, seq)
	case err != nil:
		return nil, s.fail(describeKey(key), err)
	}
	defer closer.Close()
	m, err := headIn(key, value)
	if err != nil {
		return nil, err
	}
	return bytes.Clone(m.GetChain()), nil
}

// SessionIDs returns, in order, the ids of all sessions with a record, even if their events cannot be read.
func (s *Store) SessionIDs(ctx context.Context) ([]string, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	return s.allIDs()
}
