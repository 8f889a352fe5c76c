package disklog

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	eventlog "github.com/contextd/contextd/internal/log"
)

// slot belongs to a session id, even if there is no such session. It is the unit of locking and of caching.
type slot struct {
	id string
	// mu is held during changes of the session. Its holder may wait for the disk.
	mu     sync.Mutex
	loaded atomic.Bool
	// session is nil if there is none. Set under mu.
	session atomic.Pointer[session]

	users int           // guarded by Store.mu
	held  int64         // the session's share in Store.held, guarded by Store.mu
	place *list.Element // in Store.recent, guarded by Store.mu
}

// acquire returns the slot of an id, loaded. The caller must release it.
func (s *Store) acquire(id string) (_ *slot, err error) {
	defer inSession(id, &err)
	sl := s.slotOf(id)
	if sl.loaded.Load() {
		return sl, nil
	}
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.loaded.Load() {
		return sl, nil
	}
	found, err := s.load(id)
	if err != nil {
		s.release(sl)
		return nil, err
	}
	sl.session.Store(found)
	sl.loaded.Store(true)
	return sl, nil
}

// slotOf returns the slot of an id, which need not be loaded. The caller must release it.
func (s *Store) slotOf(id string) *slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	sl := s.slots[id]
	if sl == nil {
		sl = &slot{id: id}
		sl.place = s.recent.PushBack(sl)
		s.slots[id] = sl
	}
	s.recent.MoveToBack(sl.place)
	sl.users++
	return sl
}

// retain adds a user to a slot that has one.
func (s *Store) retain(sl *slot) {
	s.mu.Lock()
	sl.users++
	s.mu.Unlock()
}

// release gives a slot back. Slots without users are dropped at some time; their sessions can be loaded again.
func (s *Store) release(sl *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sl.users--; sl.users > 0 {
		return
	}
	kept := sl.session.Load()
	if kept == nil {
		s.drop(sl)
		return
	}
	weight := kept.weight.Load()
	s.held += weight - sl.held
	sl.held = weight
	// Look at a few slots only: many may be in use, and those cannot be dropped.
	for range 4 {
		if s.recent.Len() <= s.opts.IdleSessions && s.held <= s.opts.IdleBytes {
			return
		}
		oldest := s.recent.Front().Value.(*slot)
		if oldest.users > 0 {
			s.recent.MoveToBack(oldest.place)
			continue
		}
		s.drop(oldest)
	}
}

// drop forgets a slot. Store.mu is held.
func (s *Store) drop(sl *slot) {
	s.recent.Remove(sl.place)
	delete(s.slots, sl.id)
	s.held -= sl.held
	sl.held = 0
	s.drops++
}

// find returns a visible session with its slot, which the caller must release.
func (s *Store) find(id string) (*slot, *session, error) {
	sl, err := s.acquire(id)
	if err != nil {
		return nil, nil, err
	}
	if found := sl.session.Load(); found.visible() {
		return sl, found, nil
	}
	s.release(sl)
	return nil, nil, eventlog.NoSession(id)
}

// findAgain is find for reading page by page. The first call sets of to the session's incarnation; later calls fail
// if the id has another one.
func (s *Store) findAgain(id string, of *eventlog.Incarnation) (*slot, *session, error) {
	sl, found, err := s.find(id)
	switch {
	case err != nil:
		return nil, nil, err
	case *of == 0:
		*of = found.incarnation()
	case *of != found.incarnation():
		s.release(sl)
		return nil, nil, eventlog.NoSession(id)
	}
	return sl, found, nil
}

// load reads a session from disk. It returns nil if there is none.
func (s *Store) load(id string) (*session, error) {
	key := sessionKey(id)
	value, closer, err := s.get(key)
	switch {
	case errors.Is(err, pebble.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, s.fail(describeKey(key), err)
	}
	if len(value) == 0 {
		return nil, closer.Close() // a session that was deleted while it was damaged
	}
	r, err := decodeSession(key, value)
	closer.Close()
	if err != nil {
		return nil, err
	}
	s.unlist(r.own().segment)
	at, err := s.newestState(r, nil)
	if err != nil {
		return nil, err
	}
	put, err := s.loadPuts(r.own().segment)
	if err != nil {
		return nil, err
	}
	found := newSession(r, at, put)
	found.publish(at)
	return found, nil
}

// Session returns the current state of a session.
func (s *Store) Session(ctx context.Context, id string) (_ eventlog.Session, err error) {
	defer inSession(id, &err)
	if err := s.enter(ctx); err != nil {
		return eventlog.Session{}, err
	}
	defer s.leave()
	sl, found, err := s.find(id)
	if err != nil {
		return eventlog.Session{}, err
	}
	defer s.release(sl)
	return found.describe(), nil
}
