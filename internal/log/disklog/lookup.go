package disklog

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"

	eventlog "github.com/contextd/contextd/internal/log"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

// lookupIn finds a batch's event_ids in the session, admitted events included.
// The slot's mu is held.
func (s *Store) lookupIn(target *session, encoded []encodedEvent) func(int) (eventlog.Known, bool, error) {
	return func(index int) (eventlog.Known, bool, error) {
		hash := encoded[index].idHash
		for i := len(target.links) - 1; i >= 0; i-- {
			l := target.links[i]
			if l.owned() {
				if known, found := target.expected(hash); found {
					return known, true, nil
				}
				may, err := s.ownMayHold(target, hash)
				if err != nil {
					return eventlog.Known{}, false, err
				}
				if !may {
					continue
				}
			}
			known, found, err := s.lookup(l, hash)
			if err != nil || found {
				return known, found, err
			}
		}
		return eventlog.Known{}, false, nil
	}
}

// ownMayHold reports false only if the session's own segment, as the database has
// it, does not hold the event_id.
func (s *Store) ownMayHold(target *session, hash idHash) (bool, error) {
	events := target.at.head.Seq - target.own().base
	if events == 0 {
		return false, nil
	}
	if target.ids == nil {
		// The filter of a session that was loaded is filled once that is likely to
		// pay: a look into the database costs as much as reading some tens of keys.
		if target.looks++; target.looks < 16+int(events/64) {
			return true, nil
		}
		filled, err := s.fillFilter(target.own().segment)
		if err != nil {
			return false, err
		}
		target.ids = filled
		target.mu.Lock()
		for hash := range target.soon {
			target.ids.add(hash)
		}
		target.mu.Unlock()
	}
	return target.ids.mayHold(hash), nil
}

func (s *Store) fillFilter(segment segmentID) (*idFilter, error) {
	prefix := kindPrefix(segment, keyIndex)
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: prefixEnd(prefix)})
	if err != nil {
		return nil, s.fail("index", err)
	}
	defer it.Close()
	filter := &idFilter{}
	for ok := it.First(); ok; ok = it.Next() {
		if hash := it.Key()[len(prefix):]; len(hash) == eventIDHashSize {
			filter.add(idHash(hash))
		}
	}
	if err := it.Error(); err != nil {
		return nil, s.fail("index", err)
	}
	return filter, nil
}

// lookup finds an event_id in a link, by its hash.
func (s *Store) lookup(l link, hash idHash) (eventlog.Known, bool, error) {
	key := indexKey(l.segment, hash)
	value, closer, err := s.get(key)
	switch {
	case errors.Is(err, pebble.ErrNotFound):
		return eventlog.Known{}, false, nil
	case err != nil:
		return eventlog.Known{}, false, s.fail(describeKey(key), err)
	}
	var m storagev1.Index
	err = decode(key, keyIndex, value, &m)
	closer.Close()
	if err != nil {
		return eventlog.Known{}, false, err
	}
	known := eventlog.Known{Seq: eventlog.Seq(m.GetSeq())}
	if len(m.GetDigest()) != len(known.Digest) {
		return eventlog.Known{}, false, &eventlog.CorruptError{What: describeKey(key), Reason: "its digest has the wrong size"}
	}
	if known.Seq > l.upTo {
		return eventlog.Known{}, false, nil
	}
	copy(known.Digest[:], m.GetDigest())
	first, err := s.event(l, known.Seq)
	if err != nil {
		return eventlog.Known{}, false, err
	}
	known.Tokens = first.Tokens
	return known, true, nil
}
