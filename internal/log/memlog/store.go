package memlog

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Store is an eventlog.Store in memory. An admitted batch is visible at once, so Commit.Wait never blocks.
type Store struct {
	mu       sync.RWMutex
	sessions map[string]*session
	// order caches the sorted ids of the sessions; nil after a session was made or deleted.
	order  atomic.Pointer[[]string]
	made   eventlog.Incarnation // of the newest session
	closed chan struct{}
}

// session is a session of the store. The store's lock guards its fields.
type session struct {
	info eventlog.Session // Head, Turns, LogBytes and ArtifactBytes are not kept up to date
	// chain covers the whole log, oldest first. The last link is the segment that the session writes.
	chain []link
	head  eventlog.Head
	bytes uint64
	// artifactBytes is the size of the stored artifacts, in bytes.
	artifactBytes uint64
	// moved is closed and replaced when the head moves. When the session is deleted, it is closed and not replaced.
	moved chan struct{}
}

var _ eventlog.Store = (*Store)(nil)

// New makes an empty store.
func New() *Store {
	return &Store{sessions: map[string]*session{}, closed: make(chan struct{})}
}

// check returns why a call cannot be served. The lock is held.
func (s *Store) check(ctx context.Context) error {
	select {
	case <-s.closed:
		return eventlog.ErrClosed
	default:
		return ctx.Err()
	}
}

// find returns a session. The lock is held.
func (s *Store) find(ctx context.Context, id string) (*session, error) {
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	if found := s.sessions[id]; found != nil {
		return found, nil
	}
	return nil, eventlog.NoSession(id)
}

// add makes a session whose log is that of the chain. The lock is held.
func (s *Store) add(info eventlog.Session, chain []link, head eventlog.Head, size uint64) *session {
	own := newSegment(head.Seq)
	s.made++
	info.Incarnation = s.made
	made := &session{info: info, chain: append(chain, own.whole()), head: head, bytes: size, moved: make(chan struct{})}
	for _, l := range made.chain {
		l.segment.refs[made] = l
	}
	s.sessions[info.ID] = made
	s.order.Store(nil)
	return made
}

func (s *session) describe() eventlog.Session {
	d := s.info
	d.Head, d.Turns, d.LogBytes, d.ArtifactBytes = s.head.Seq, s.head.Turns, s.bytes, s.artifactBytes
	return d
}

func (s *session) own() *segment { return s.chain[len(s.chain)-1].segment }

// upTo returns the head after an event of the session, and the log's size up to it.
func (s *session) upTo(seq eventlog.Seq) (head eventlog.Head, size uint64) {
	if seq == s.head.Seq {
		return s.head, s.bytes
	}
	for _, l := range s.chain {
		for _, r := range l.slice(1, seq) {
			head.Apply(r.event.Seq, r.change)
			size = r.bytes
		}
	}
	return head, size
}

// CreateSession makes an empty session.
func (s *Store) CreateSession(ctx context.Context, from eventlog.Session) (eventlog.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.check(ctx); err != nil {
		return eventlog.Session{}, err
	}
	if err := from.Validate(); err != nil {
		return eventlog.Session{}, err
	}
	if s.sessions[from.ID] != nil {
		return eventlog.Session{}, &eventlog.ExistsError{Kind: "session", Name: from.ID}
	}
	created := from.CreateTime.UTC().Round(0)
	return s.add(eventlog.Session{
		ID:         from.ID,
		CreateTime: created,
		UpdateTime: created,
		Labels:     maps.Clone(from.Labels),
		Settings:   bytes.Clone(from.Settings),
	}, nil, eventlog.Head{}, 0).describe(), nil
}

// Session returns the current state of a session.
func (s *Store) Session(ctx context.Context, id string) (eventlog.Session, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	found, err := s.find(ctx, id)
	if err != nil {
		return eventlog.Session{}, err
	}
	return found.describe(), nil
}

// ListSessions returns sessions in the order of their ids.
func (s *Store) ListSessions(ctx context.Context, q eventlog.SessionQuery) ([]eventlog.Session, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	if err := q.Validate(); err != nil {
		return nil, err
	}
	var page []eventlog.Session
	ids := s.ids()
	for first, _ := slices.BinarySearch(ids, q.After); first < len(ids) && (q.Before == "" || ids[first] < q.Before); first++ {
		id := ids[first]
		if found := s.sessions[id]; q.Spans(id) && found.info.Matches(q.Labels) {
			page = append(page, found.describe())
			if len(page) == q.Limit {
				break
			}
		}
	}
	return page, nil
}

// ids returns the ids of the sessions in order. The lock is held, at least for reading.
func (s *Store) ids() []string {
	if known := s.order.Load(); known != nil {
		return *known
	}
	ids := slices.Sorted(maps.Keys(s.sessions))
	s.order.Store(&ids)
	return ids
}

// Fork makes a session that shares its parent's segments.
func (s *Store) Fork(ctx context.Context, r eventlog.ForkRequest) (eventlog.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	parent, err := s.find(ctx, r.ParentID)
	if err != nil {
		return eventlog.Session{}, err
	}
	if err := r.Validate(parent.head.Seq); err != nil {
		return eventlog.Session{}, err
	}
	if s.sessions[r.NewID] != nil {
		return eventlog.Session{}, &eventlog.ExistsError{Kind: "session", Name: r.NewID}
	}
	created := r.Time.UTC().Round(0)
	info := parent.info
	info.ID, info.ParentID, info.ForkSeq = r.NewID, r.ParentID, r.At
	info.CreateTime, info.UpdateTime = created, created
	if r.Labels != nil {
		info.Labels = maps.Clone(r.Labels)
	}

	var chain []link
	if r.At > 0 {
		for _, l := range parent.chain {
			shared := link{segment: l.segment, upTo: min(l.upTo, r.At), puts: min(l.puts, l.segment.puts)}
			if shared.last() > l.segment.base || shared.puts > 0 {
				chain = append(chain, shared)
			}
		}
	}
	head, size := parent.upTo(r.At)
	made := s.add(info, chain, head, size)
	if len(chain) > 0 {
		made.artifactBytes = parent.artifactBytes
	}
	return made.describe(), nil
}

// DeleteSession removes a session and everything of it that no fork shares.
func (s *Store) DeleteSession(ctx context.Context, id string, of eventlog.Incarnation, head *eventlog.Seq) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone, err := s.find(ctx, id)
	if err != nil {
		return err
	}
	if of != 0 && of != gone.info.Incarnation {
		return eventlog.NoSession(id)
	}
	if head != nil && *head != gone.head.Seq {
		return &eventlog.HeadMismatchError{Expected: *head, Actual: gone.head.Seq}
	}
	delete(s.sessions, id)
	s.order.Store(nil)
	for _, l := range gone.chain {
		delete(l.segment.refs, gone)
		l.segment.prune(l)
	}
	close(gone.moved)
	return nil
}

// WaitErased returns at once, because there is no copy of deleted data.
func (s *Store) WaitErased(context.Context, eventlog.Incarnation) error { return nil }

// Capabilities says that deletion erases, and that there is no hash chain and one writer.
func (s *Store) Capabilities() eventlog.Capabilities {
	return eventlog.Capabilities{Erases: true, OneWriter: true}
}

// Healthy returns nil while the store is open.
func (s *Store) Healthy() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.check(context.Background())
}

// Close removes everything.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.check(context.Background()); err != nil {
		return err
	}
	close(s.closed)
	s.sessions = nil
	return nil
}

// Lease grants every lease, because no other process writes to the store.
func (s *Store) Lease(ctx context.Context, id string, of eventlog.Incarnation, _ string, _ time.Duration) (bool, error) {
	return eventlog.LeaseAlone(ctx, s, id, of)
}

// Release does nothing, because no other process waits for a lease.
func (s *Store) Release(context.Context, string, eventlog.Incarnation, string) error { return nil }
