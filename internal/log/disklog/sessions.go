package disklog

import (
	"bytes"
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"
	eventlog "github.com/contextd/contextd/internal/log"
)

// ListSessions returns sessions in the order of their ids.
func (s *Store) ListSessions(ctx context.Context, q eventlog.SessionQuery) ([]eventlog.Session, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	// No id is empty: this is after After, and without one before all ids.
	lower, upper := append(sessionKey(q.After), 0), []byte{keySession + 1}
	if q.Before != "" {
		upper = sessionKey(q.Before)
	}
	if bytes.Compare(lower, upper) >= 0 {
		return nil, nil
	}
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return nil, s.fail("sessions", err)
	}
	defer it.Close()
	var page []eventlog.Session
	for ok := it.First(); ok && (q.Limit == 0 || len(page) < q.Limit); ok = it.Next() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return s.listAnyway(q, s.fail(describeKey(it.Key()), err))
		}
		if len(value) == 0 {
			continue // it was damaged, and deleted
		}
		var r *record
		if value, err = s.unsealed(it.Key(), value); err == nil {
			r, err = decodeSession(it.Key(), value)
		}
		if err != nil {
			r = &record{info: eventlog.Session{ID: string(it.Key()[1:])}}
		}
		described, shown, err := s.list(q, r, err)
		if err != nil {
			return nil, err
		}
		if shown {
			page = append(page, described)
		}
	}
	if err := it.Error(); err != nil {
		return s.listAnyway(q, s.fail("sessions", err))
	}
	return page, nil
}

// listAnyway lists what there is where the records are damaged.
func (s *Store) listAnyway(q eventlog.SessionQuery, err error) ([]eventlog.Session, error) {
	if _, corrupt := errors.AsType[*eventlog.CorruptError](err); !corrupt {
		return nil, err
	}
	return s.listAll(q, err)
}

// describeListed describes a session whose record was found. It does not fill
// the memory with sessions that nobody uses.
func (s *Store) describeListed(r *record) (d eventlog.Session, shown bool, err error) {
	s.mu.Lock()
	sl := s.slots[r.info.ID]
	s.mu.Unlock()
	if sl != nil && sl.loaded.Load() {
		found := sl.session.Load()
		if !found.visible() {
			return d, false, nil
		}
		return found.describe(), true, nil
	}
	// Nobody writes it now, so what is on disk is durable.
	at, err := s.newestState(r)
	if err != nil {
		return d, false, err
	}
	put, err := s.loadPuts(r.own().segment)
	return r.describe(at, put), err == nil, err
}
