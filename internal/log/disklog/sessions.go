package disklog

import (
	"bytes"
	"context"
	"errors"
	"time"

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
	// The bounds are keys: the first id after After, or, without one, the first id; no id is empty.
	lower, upper := append(sessionKey(q.After), 0), []byte{keySession + 1}
	if q.Before != "" {
		upper = sessionKey(q.Before)
	}
	if bytes.Compare(lower, upper) >= 0 {
		return nil, nil
	}
	l := listing{Store: s, query: q}
	s.mu.Lock()
	l.dropsBefore = s.drops
	s.mu.Unlock()
	s.deleting.RLock()
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	s.deleting.RUnlock()
	if err != nil {
		return nil, s.fail("sessions", err)
	}
	defer it.Close()
	if l.states, err = it.Clone(pebble.CloneOptions{IterOptions: &pebble.IterOptions{}}); err != nil {
		return nil, s.fail("sessions", err)
	}
	defer l.states.Close()
	var page []eventlog.Session
	for ok := it.First(); ok && (q.Limit == 0 || len(page) < q.Limit); ok = it.Next() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return l.listAnyway(s.fail(describeKey(it.Key()), err))
		}
		if len(value) == 0 {
			continue // a session that was deleted while it was damaged
		}
		var r *record
		if value, err = s.unsealed(it.Key(), value); err == nil {
			r, err = decodeSession(it.Key(), value)
		}
		if err != nil {
			r = &record{info: eventlog.Session{ID: string(it.Key()[1:])}}
		}
		described, shown, err := l.list(r, err)
		if err != nil {
			return nil, err
		}
		if shown {
			page = append(page, described)
		}
	}
	if err := it.Error(); err != nil {
		return l.listAnyway(s.fail("sessions", err))
	}
	return page, nil
}

// listAnyway returns what can be found for a list whose records are damaged.
func (l *listing) listAnyway(err error) ([]eventlog.Session, error) {
	if _, corrupt := errors.AsType[*eventlog.CorruptError](err); !corrupt {
		return nil, err
	}
	return l.listAll(err)
}

// listing is the state of one ListSessions.
type listing struct {
	*Store
	query eventlog.SessionQuery
	// states reads heads as they were when the list began; nil reads them as they are now.
	states *pebble.Iterator
	// dropsBefore is the value of Store.drops from before states was opened.
	dropsBefore uint64
}

// listedState is a cached state of a session without a slot, so that brief lists need not read its head again.
type listedState struct {
	// known is false until the list that made the entry has read the head.
	known  bool
	head   eventlog.Seq
	turns  uint32
	bytes  uint64
	update time.Time
}

// maxListed bounds the cache of listedStates, which take up to 10 MiB.
const maxListed = 1 << 17

// describe describes the session of a record. It does not load unused sessions into memory.
func (l *listing) describe(r *record) (d eventlog.Session, shown bool, err error) {
	sl, at, looking := l.look(r)
	if sl != nil && sl.loaded.Load() {
		found := sl.session.Load()
		if !found.visible() {
			return d, false, nil
		}
		return found.describe(), true, nil
	}
	if at == nil {
		// Nobody writes to a session without a slot, so what is on disk is durable.
		var newest state
		newest, err = l.newestState(r, l.states)
		l.note(r, looking, newest, err)
		at = &newest
	}
	var put puts
	if err == nil && !l.query.Brief {
		put, err = l.loadPuts(r.own().segment)
	}
	d = r.describe(*at, put.bytes)
	if l.query.Brief {
		d.ChainHead = nil
	}
	return d, err == nil, err
}

// look returns what is in memory of a session: its slot, or its cached state. If there is neither, looking may be a
// new cache entry for the state that is then read from disk.
func (l *listing) look(r *record) (sl *slot, kept *state, looking *listedState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	sl = l.slots[r.info.ID]
	if sl != nil || !l.query.Brief {
		return sl, nil, nil
	}
	segment := r.own().segment
	switch k := l.listed[segment]; {
	case k != nil && k.known:
		return nil, &state{head: eventlog.Head{Seq: k.head, Turns: k.turns}, bytes: k.bytes, update: k.update}, nil
	// If a slot was dropped since the list began, states may be older than what that slot wrote: do not cache it.
	case k == nil && l.dropsBefore == l.drops && len(l.listed) < maxListed:
		looking = &listedState{}
		l.listed[segment] = looking
	}
	return nil, nil, looking
}

// note fills the cache entry looking, unless the session was loaded meanwhile.
func (l *listing) note(r *record, looking *listedState, at state, err error) {
	if looking == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch segment := r.own().segment; {
	case l.listed[segment] != looking:
	case err != nil:
		delete(l.listed, segment)
	default:
		*looking = listedState{known: true, head: at.head.Seq, turns: at.head.Turns, bytes: at.bytes, update: at.update}
	}
}

// unlist removes a session's cached state, because the session may change from now on.
func (s *Store) unlist(own segmentID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listed, own)
}
