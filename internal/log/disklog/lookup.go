package disklog

import (
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	eventlog "github.com/contextd/contextd/internal/log"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

// lookupIn returns a function that finds a batch's event_ids in the session, including events that are only admitted.
// The slot's mu is held.
func (s *Store) lookupIn(target *session, encoded []encodedEvent) func(int) (eventlog.Known, bool, error) {
	return func(index int) (eventlog.Known, bool, error) {
		hash := encoded[index].idHash
		if known, found := target.expected(hash); found {
			return known, true, nil
		}
		may, err := s.ownMayHold(target, hash)
		if err != nil {
			return eventlog.Known{}, false, err
		}
		if may {
			if known, found, err := s.lookup(target.own(), hash); err != nil || found {
				return known, found, err
			}
		}
		if may, err = s.sharedMayHold(target, hash); err != nil || !may {
			return eventlog.Known{}, false, err
		}
		for _, l := range slices.Backward(target.links[:len(target.links)-1]) {
			if known, found, err := s.lookup(l, hash); err != nil || found {
				return known, found, err
			}
		}
		return eventlog.Known{}, false, nil
	}
}

// ownMayHold reports false only if the session's own segment does not have the event_id in the database. It does not
// check events that are not written yet.
func (s *Store) ownMayHold(target *session, hash idHash) (bool, error) {
	events := target.at.head.Seq - target.own().base
	if events == 0 {
		return false, nil
	}
	if target.ids == nil {
		// A loaded session's filter is filled only when that is likely to pay: a lookup in the database costs as much
		// as reading some tens of keys.
		if target.looks++; target.looks < 16+int(events/64) {
			return true, nil
		}
		filled := &idFilter{}
		if err := s.fill(filled, target.own().segment); err != nil {
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

// sharedMayHold reports false only if no segment that the session shares has the event_id. A chain of forks has many
// segments, and without the filter a lookup goes through them one by one.
func (s *Store) sharedMayHold(target *session, hash idHash) (bool, error) {
	const few = 4 // events: a fork that is soon abandoned may get as many
	shared := target.links[:len(target.links)-1]
	if len(shared) == 0 {
		return false, nil
	}
	if target.shared == nil {
		target.sharedLooks++
		if (target.sharedLooks-few)*len(shared) <= int(target.own().base/64) || !target.visible() {
			return true, nil // a session that is not visible yet may share events that are not in the database yet
		}
		filled := &idFilter{}
		for _, l := range shared {
			if err := s.fill(filled, l.segment); err != nil {
				return false, err
			}
		}
		target.shared = filled
	}
	return target.shared.mayHold(hash), nil
}

// fill adds the event_ids of a segment to a filter.
func (s *Store) fill(filter *idFilter, segment segmentID) error {
	prefix := kindPrefix(segment, keyIndex)
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: prefixEnd(prefix)})
	if err != nil {
		return s.fail("index", err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		if hash := it.Key()[len(prefix):]; len(hash) == eventIDHashSize {
			filter.add(idHash(hash))
		}
	}
	if err := it.Error(); err != nil {
		return s.fail("index", err)
	}
	return nil
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
