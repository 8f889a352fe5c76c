package disklog

import (
	"errors"
	"maps"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	eventlog "github.com/contextd/contextd/internal/log"
)

// If the sessions' records cannot be read in sequence, the ids of the sessions are found in the references of
// segments, which name them too.

const (
	// unreadableSegments is the number of unreadable segments in a row after which the search stops.
	unreadableSegments = 256
	// segmentGap exceeds the number of segments whose keys a damaged stretch of the database can hide.
	segmentGap = 1 << 32
)

// allIDs returns, in order, the ids of all sessions that any readable record or reference names.
func (s *Store) allIDs() ([]string, error) {
	found := map[string]bool{}
	err := s.scan([]byte{keySession}, []byte{keySession + 1}, func(it *pebble.Iterator) error {
		// The bare letter is no session's key. A key without a value is a deleted session's; see the format on
		// deletions. A value that cannot be read still has a length.
		if id, value := it.Key()[1:], it.LazyValue(); len(id) > 0 && value.Len() > 0 {
			found[string(id)] = true
		}
		return nil
	})
	if _, corrupt := errors.AsType[*eventlog.CorruptError](err); err == nil || !corrupt {
		return slices.Sorted(maps.Keys(found)), err
	}
	err = s.eachReference(func(_ *pebble.Iterator, id string) { found[id] = true })
	return slices.Sorted(maps.Keys(found)), err
}

// eachReference visits the references that can be read, of each segment in turn.
func (s *Store) eachReference(visit func(it *pebble.Iterator, session string)) error {
	for segment, skipped := segmentID(1), 0; segment <= segmentID(s.lastSegment.Load()) && skipped < unreadableSegments; segment++ {
		next, err := s.segmentFrom(segment)
		if err == nil {
			if next == 0 {
				break
			}
			segment = next
			references := kindPrefix(segment, keyReference)
			err = s.scan(references, prefixEnd(references), func(it *pebble.Iterator) error {
				visit(it, string(it.Key()[len(references):]))
				return nil
			})
		}
		switch _, corrupt := errors.AsType[*eventlog.CorruptError](err); {
		case err == nil:
			skipped = 0
		case corrupt:
			skipped++
		default:
			return err
		}
	}
	return nil
}

// segmentFrom returns the first segment in use that is not before one; 0 if there is
// none.
func (s *Store) segmentFrom(segment segmentID) (first segmentID, err error) {
	errFound := errors.New("found")
	err = s.scan(segmentPrefix(segment), []byte{keySegment + 1}, func(it *pebble.Iterator) error {
		first = keySegmentID(it.Key())
		return errFound
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	return first, err
}

// scan visits the keys of a span until visit returns an error.
func (s *Store) scan(lower, upper []byte, visit func(*pebble.Iterator) error) error {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return s.fail("keys", err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		if err := visit(it); err != nil {
			return err
		}
	}
	if err := it.Error(); err != nil {
		return s.fail("keys", err)
	}
	return nil
}

// listAll is ListSessions for a database whose records cannot be read in sequence. reason is the error of that.
func (l *listing) listAll(reason error) ([]eventlog.Session, error) {
	ids, err := l.allIDs()
	if err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, reason // the names of all sessions may be lost: an empty list would hide them
	}
	var page []eventlog.Session
	for _, id := range ids {
		if !l.query.Spans(id) {
			continue
		}
		if l.query.Limit > 0 && len(page) == l.query.Limit {
			break
		}
		key := sessionKey(id)
		value, closer, err := l.get(key)
		switch {
		case errors.Is(err, pebble.ErrNotFound):
			continue // it is being deleted
		case err != nil:
			err = l.fail(describeKey(key), err)
		}
		var r *record
		if err == nil {
			deleted := len(value) == 0
			if !deleted {
				r, err = decodeSession(key, value)
			}
			if closeErr := closer.Close(); closeErr != nil || deleted {
				continue
			}
		}
		if err != nil {
			r = &record{info: eventlog.Session{ID: id}}
		}
		listed, shown, err := l.list(r, err)
		if err != nil {
			return nil, err
		}
		if shown {
			page = append(page, listed)
		}
	}
	return page, nil
}

// list describes a session for a page, or says that it must not be shown. err is the error of reading its record. A
// damaged session is described as far as r and the disk permit.
func (l *listing) list(r *record, err error) (d eventlog.Session, shown bool, _ error) {
	if !r.info.Matches(l.query.Labels) {
		return d, false, nil
	}
	if err == nil {
		if d, shown, err = l.describe(r); err == nil {
			return d, shown, nil
		}
	}
	if _, corrupt := errors.AsType[*eventlog.CorruptError](err); !corrupt {
		return d, false, err
	}
	inSession(r.info.ID, &err)
	l.logger.Debug("a session that is listed is damaged", "session", r.info.ID, "error", err)
	d = r.info
	d.Damaged = true
	return d, true, nil
}

// highestKnownSegment returns a number that no segment in use exceeds, if the database cannot say which segment is
// the last.
func (s *Store) highestKnownSegment() (segmentID, error) {
	var last segmentID
	err := s.scan([]byte{keySession}, []byte{keySession + 1}, func(it *pebble.Iterator) error {
		value, err := it.ValueAndErr()
		if err != nil {
			return s.fail(describeKey(it.Key()), err)
		}
		if value, err = s.unsealed(it.Key(), value); err != nil {
			return s.failure()
		}
		if r, err := decodeSession(it.Key(), value); err == nil {
			for _, l := range r.links {
				last = max(last, l.segment)
			}
		}
		return nil
	})
	if _, corrupt := errors.AsType[*eventlog.CorruptError](err); err != nil && !corrupt {
		return 0, err
	}
	tables, err := s.db.SSTables()
	if err != nil {
		return 0, s.fail("tables", err)
	}
	for _, level := range tables {
		for _, table := range level {
			for _, key := range [][]byte{table.Smallest.UserKey, table.Largest.UserKey} {
				if len(key) > 0 && key[0] == keySegment {
					last = max(last, keySegmentID(key))
				}
			}
		}
	}
	return last + segmentGap, nil
}
