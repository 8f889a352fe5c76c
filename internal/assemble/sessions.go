package assemble

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/contextd/contextd/internal/fair"
	"github.com/contextd/contextd/internal/memory"
)

// sessions are the sessions of one engine that are in memory.
type sessions struct {
	*pool
	byID map[string]*session
}

// pool has the sessions that were used last, and those in use, of all engines that share memory.
type pool struct {
	mu     sync.Mutex
	limit  int
	room   int // how many bytes sessions may hold before idle ones are evicted
	work   *memory.Budget
	turns  *fair.Turns
	wait   time.Duration // how long a call waits for a session; 0 is as long as it takes
	recent *list.List    // newest first
	bytes  int           // held by all sessions together
	// shared says that other processes write to the store, too. Then each request reads again what they may
	// have stored next to a log.
	shared bool
}

func newSessions(limit, room int, work *memory.Budget, turns *fair.Turns, wait time.Duration) *sessions {
	p := &pool{limit: max(limit, 1), room: room, work: work, turns: turns, wait: wait, recent: list.New()}
	return p.sessions()
}

// sessions returns an empty set of sessions, for another engine that shares the pool.
func (all *pool) sessions() *sessions { return &sessions{all, map[string]*session{}} }

// acquire waits until no other caller uses the session. The caller must call the function that it returns. The error
// is a *SessionBusyError, or ctx's.
func (all *sessions) acquire(ctx context.Context, id string) (*session, func(), error) {
	s := all.join(id)
	var late <-chan time.Time
	if all.wait > 0 {
		late = time.After(all.wait)
	}
	select {
	case <-s.turn:
		return s, all.beginUse(s), nil
	case <-ctx.Done():
		all.leave(s)
		return nil, nil, ctx.Err()
	case <-late:
		all.leave(s)
		return nil, nil, &SessionBusyError{SessionID: id, Waited: all.wait, RetryAfter: fair.RetryAfter}
	}
}

// tryAcquire acquires the session if it is in memory and no other caller uses it. The caller must call release.
func (all *sessions) tryAcquire(id string) (s *session, release func(), ok bool) {
	if !all.known(id) {
		return nil, nil, false
	}
	s = all.join(id)
	select {
	case <-s.turn:
		return s, all.beginUse(s), true
	default:
		all.leave(s)
		return nil, nil, false
	}
}

// beginUse starts the use of a session by the caller that has received its token. release gives the token back.
func (all *pool) beginUse(s *session) (release func()) {
	all.mu.Lock()
	stale, newSummaries := s.stale, s.newSummaries
	s.stale, s.newSummaries = false, false
	all.mu.Unlock()
	if stale {
		s.reset()
	}
	if newSummaries || all.shared {
		s.forgetSummaries()
	}
	if all.shared {
		s.known = nil
	}
	s.pinned = 0
	s.answers, s.whole = false, false
	return func() {
		s.computing.End()
		s.shrink()
		all.done(s)
		s.grant.Release()
		s.grant = nil
		s.turn <- struct{}{}
	}
}

// apart returns a session outside the pool, for an answer from the store without caches. It reserves memory and the
// processor like a session of the pool. release gives both back.
func (all *pool) apart(id string) (s *session, release func()) {
	s = &session{id: id, room: all.room, work: all.work, computing: fair.Of(all.turns)}
	s.reset()
	return s, func() {
		s.computing.End()
		s.grant.Release()
		s.grant = nil
	}
}

// join finds or makes a session and counts the caller as a user of it.
func (all *sessions) join(id string) *session {
	all.mu.Lock()
	defer all.mu.Unlock()
	s := all.byID[id]
	if s == nil {
		s = &session{id: id, home: all.byID, turn: make(chan struct{}, 1), room: all.room, work: all.work, computing: fair.Of(all.turns), expect: all.expect}
		s.reset()
		s.turn <- struct{}{}
		s.place = all.recent.PushFront(s)
		all.byID[id] = s
	} else {
		all.recent.MoveToFront(s.place)
	}
	s.users++
	all.trim()
	return s
}

// leave ends a caller's wait for a session that it did not get.
func (all *pool) leave(s *session) {
	all.mu.Lock()
	defer all.mu.Unlock()
	s.users--
	all.trim()
}

// done ends the use of a session by the caller that had its turn. If callers wait for it and the pool holds
// too much, the session is reset: so each waiting caller reserves memory for it in its own turn.
func (all *pool) done(s *session) {
	held := s.held()
	all.mu.Lock()
	defer all.mu.Unlock()
	s.users--
	all.grow(s, held-s.bytes)
	if all.trim(); s.users > 0 && all.bytes > all.room && all.bytes > s.bytes {
		all.grow(s, -s.bytes)
		s.reset()
	}
}

// expect counts bytes that are about to be read into a session, and evicts idle sessions to make room.
func (all *pool) expect(s *session, bytes uint64) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.grow(s, int(min(bytes, uint64(all.room))))
	all.trim()
}

func (all *pool) grow(s *session, bytes int) {
	s.bytes += bytes
	all.bytes += bytes
}

// trim evicts the idle sessions used least recently while there are too many, or they hold too much. A session in use
// stays: with a second copy of it two callers could assemble the same session at the same time.
func (all *pool) trim() {
	for place := all.recent.Back(); place != nil && all.recent.Len() > 1; {
		s := place.Value.(*session)
		place = place.Prev()
		if all.recent.Len() <= all.limit && all.bytes <= all.room {
			return
		}
		if s.users == 0 {
			all.drop(s)
		}
	}
}

// forget evicts an idle session. One in use is reset when it is next acquired.
func (all *sessions) forget(id string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if s := all.byID[id]; s != nil && s.users == 0 {
		all.drop(s)
	} else if s != nil {
		s.stale = true
	}
}

// forgetSummaries has a session read its summaries again.
func (all *sessions) forgetSummaries(id string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if s := all.byID[id]; s != nil {
		s.newSummaries = true
	}
}

// known reports whether the session is in memory.
func (all *sessions) known(id string) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.byID[id] != nil
}

func (all *pool) drop(s *session) {
	all.recent.Remove(s.place)
	delete(s.home, s.id)
	all.bytes -= s.bytes
}

// Forget evicts a session from memory. Call it when the session was deleted.
func (e *Engine) Forget(sessionID string) {
	e.sessions.forget(sessionID)
	e.shadow.sessions.forget(sessionID)
	e.replays.forget(sessionID)
}

// forgetSummaries has a session read its summaries again.
func (e *Engine) forgetSummaries(sessionID string) {
	e.sessions.forgetSummaries(sessionID)
	e.shadow.sessions.forgetSummaries(sessionID)
}
