package disklog

import (
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	eventlog "github.com/contextd/contextd/internal/log"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

// DeleteSession removes a session and everything of it that no fork shares. It returns when that is durable and the
// segments' keys are destroyed. The session's bytes are erased from the disk in the background.
func (s *Store) DeleteSession(ctx context.Context, id string, of eventlog.Incarnation, head *eventlog.Seq) (err error) {
	defer inSession(id, &err)
	if err := s.enterToChange(ctx); err != nil {
		return err
	}
	defer s.leave()
	if err := s.beginErasing(); err != nil {
		return err
	}
	defer s.erasing.RUnlock()
	s.room.deletions.Add(1)
	defer s.room.deletions.Add(-1)
	sl, target, err := s.condemned(id, head)
	if err != nil {
		return err
	}
	defer s.release(sl)
	if of != 0 && of != target.incarnation() {
		return eventlog.NoSession(id)
	}
	if err := s.forget(sl, target, head); err != nil {
		return err
	}
	if err := s.destroyKeys(target.segments()); err != nil {
		return err
	}
	s.eraser.add(target.own().segment, target.segments())
	return nil
}

// condemned finds a session to delete. Unlike find it accepts a session that cannot be read, unless head is set, and
// returns it with a slot that is not loaded.
func (s *Store) condemned(id string, head *eventlog.Seq) (*slot, *session, error) {
	sl, target, err := s.find(id)
	if _, corrupt := errors.AsType[*eventlog.CorruptError](err); !corrupt || head != nil {
		return sl, target, err
	}
	r, recordErr := s.recordAnyhow(id)
	if recordErr != nil {
		return nil, nil, recordErr
	}
	if len(r.links) == 0 {
		s.logger.Error("a deleted session's events stay in the event log, because damage hides which they are: see contextd repair", "session", id, "error", err)
		r.links = []link{{upTo: unbounded, puts: unbounded}} // of no segment
	}
	return s.slotOf(id), newSession(r, state{}, puts{}), nil
}

// recordAnyhow returns a session's record. If that cannot be read, it makes one with the links that the references
// name.
func (s *Store) recordAnyhow(id string) (*record, error) {
	key := sessionKey(id)
	value, closer, err := s.get(key)
	if err == nil {
		var r *record
		r, err = decodeSession(key, value)
		if err = errors.Join(err, closer.Close()); err == nil {
			return r, nil
		}
	}
	r := &record{info: eventlog.Session{ID: id}}
	err = s.eachReference(func(it *pebble.Iterator, of string) {
		if of != id {
			return
		}
		l := link{segment: keySegmentID(it.Key()), upTo: unbounded, puts: unbounded}
		if value, err := it.ValueAndErr(); err == nil {
			if stored, err := decodeReference(it.Key(), value); err == nil {
				l = stored
			}
		}
		r.links = append(r.links, l)
	})
	return r, err
}

// forget removes a session from the database.
func (s *Store) forget(sl *slot, target *session, head *eventlog.Seq) error {
	s.deleting.Lock()
	defer s.deleting.Unlock()
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.loaded.Load() && sl.session.Load() != target {
		return eventlog.NoSession(sl.id)
	}
	// Changes that are being committed, including forks, must be in the database to be found below, and must be
	// durable before an error may depend on them.
	if err := target.last.wait(context.Background()); err != nil {
		return err
	}
	if now := target.at.head.Seq; head != nil && *head != now {
		return &eventlog.HeadMismatchError{Expected: *head, Actual: now}
	}
	batch := s.db.NewBatch()
	remove := batch.Delete
	if !sl.loaded.Load() {
		// A lookup that meets a tombstone makes Pebble look for the older version, which is damaged. So write an
		// empty value.
		remove = func(key []byte, o *pebble.WriteOptions) error { return batch.Set(key, nil, o) }
	}
	if err := remove(sessionKey(sl.id), nil); err != nil {
		return err
	}
	for _, l := range target.links {
		if err := s.unshare(batch, l, sl.id); err != nil {
			return err
		}
	}
	if err := putDeletion(batch, target.own().segment, target.segments()); err != nil {
		return err
	}
	c, err := s.submit(batch, target.end, target.dying.Store, sl)
	if err != nil {
		return err
	}
	if err := c.wait(context.Background()); err != nil {
		return err
	}
	sl.session.Store(nil)
	return nil
}

// segments lists the segments of the session's log.
func (r *record) segments() []segmentID {
	all := make([]segmentID, len(r.links))
	for i, l := range r.links {
		all[i] = l.segment
	}
	return all
}

// putDeletion records the segments from which the deleted session's bytes must be erased.
func putDeletion(batch *pebble.Batch, own segmentID, segments []segmentID) error {
	m := &storagev1.Deletion{}
	for _, segment := range segments {
		m.Segments = append(m.Segments, uint64(segment))
	}
	key := deletionKey(own)
	value, err := encode(key, keyDeletion, m)
	if err != nil {
		return err
	}
	return batch.Set(key, value, nil)
}

// unshare removes a session's share in a segment, and the content that no other session shows. If damage hides what
// others show, the content stays.
func (s *Store) unshare(batch *pebble.Batch, taken link, session string) error {
	segment := taken.segment
	// If another session shows as much of the segment, nothing can be removed, and the search may end. In a chain of
	// forks most sessions do.
	same := false
	shares, err := s.shares(segment, session, func(l link) bool {
		same = l.upTo >= taken.upTo && l.puts == taken.puts
		return same
	})
	if err == nil && len(shares) == 0 {
		lower, upper := segmentSpan(segment)
		return batch.DeleteRange(lower, upper, nil)
	}
	if err == nil && !same {
		err = s.prune(batch, segment, shares)
	}
	if corrupt, ok := errors.AsType[*eventlog.CorruptError](err); ok {
		s.logger.Error("a part of a deleted session stays in the event log, because damage hides whether a fork shows it: see contextd repair", "session", session, "error", corrupt)
	} else if err != nil {
		return err
	}
	return batch.Delete(referenceKey(segment, session), nil)
}

// prune removes what none of the shares in a segment shows.
func (s *Store) prune(batch *pebble.Batch, segment segmentID, shares []link) error {
	var upTo eventlog.Seq
	for _, l := range shares {
		upTo = max(upTo, l.upTo)
	}
	if upTo < unbounded {
		if err := s.truncate(batch, segment, upTo); err != nil {
			return err
		}
	}
	return s.pruneArtifacts(batch, segment, shares)
}

// shares lists the links to a segment of all sessions except but. It stops at the first link for which enough is
// true; a nil enough lists all.
func (s *Store) shares(segment segmentID, but string, enough func(link) bool) ([]link, error) {
	prefix := kindPrefix(segment, keyReference)
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: prefixEnd(prefix)})
	if err != nil {
		return nil, s.fail("references", err)
	}
	defer it.Close()
	var shares []link
	for ok := it.First(); ok; ok = it.Next() {
		if string(it.Key()[len(prefix):]) == but {
			continue
		}
		value, err := s.valueOf(it)
		if err != nil {
			return nil, err
		}
		l, err := decodeReference(it.Key(), value)
		if err != nil {
			return nil, err
		}
		shares = append(shares, l)
		if enough != nil && enough(l) {
			break
		}
	}
	if err := it.Error(); err != nil {
		return nil, s.fail("references", err)
	}
	return shares, nil
}

// truncate removes a segment's events after seq.
func (s *Store) truncate(batch *pebble.Batch, segment segmentID, seq eventlog.Seq) error {
	after, end := eventKey(segment, seq+1), prefixEnd(kindPrefix(segment, keyEvent))
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: after, UpperBound: end})
	if err != nil {
		return s.fail("events", err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		value, err := s.valueOf(it)
		if err != nil {
			return err
		}
		e, err := decodeEvent(it.Key(), value)
		if err != nil {
			return err
		}
		if err := batch.Delete(indexKey(segment, eventIDHash(e.ID)), nil); err != nil {
			return err
		}
	}
	if err := it.Error(); err != nil {
		return s.fail("events", err)
	}
	return batch.DeleteRange(after, end, nil)
}

// pruneArtifacts removes the versions of a segment's artifacts that none of the
// shares shows.
func (s *Store) pruneArtifacts(batch *pebble.Batch, segment segmentID, shares []link) error {
	prefix := kindPrefix(segment, keyArtifact)
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: prefixEnd(prefix)})
	if err != nil {
		return s.fail("artifacts", err)
	}
	defer it.Close()
	var newer artifactName // the version after the current one, if of the same artifact
	for ok := it.Last(); ok; ok = it.Prev() {
		name, ok := parseArtifactKey(it.Key())
		if !ok {
			return &eventlog.CorruptError{What: describeKey(it.Key()), Reason: "it is no artifact's key"}
		}
		until := uint64(unbounded)
		if newer.kind == name.kind && newer.seq == name.seq && newer.id == name.id && newer.put > 0 {
			until = newer.put - 1
		}
		if !anyShows(shares, name, until) {
			if err := batch.Delete(it.Key(), nil); err != nil {
				return err
			}
		}
		newer = name
	}
	if err := it.Error(); err != nil {
		return s.fail("artifacts", err)
	}
	return nil
}

// anyShows reports whether a share shows this version of an artifact: the share's last put is not before name.put,
// nor after until, the last put before a newer version.
func anyShows(shares []link, name artifactName, until uint64) bool {
	for _, l := range shares {
		if name.seq <= l.upTo && name.put <= l.puts && l.puts <= until {
			return true
		}
	}
	return false
}
