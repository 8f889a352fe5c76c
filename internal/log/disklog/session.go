package disklog

import (
	"bytes"
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"unsafe"

	eventlog "github.com/contextd/contextd/internal/log"
)

// session is a session from its creation or loading to its deletion.
type session struct {
	*record

	// The admitted state, which may not be durable yet. The slot's mu guards it.
	at    state
	puts  puts
	last  *commit
	ids   *idFilter // of the own segment; nil until it is filled
	looks int       // how often an append needed ids while it was nil
	// shared is the filter of the shared segments, and sharedLooks how often it was needed while it was nil.
	shared      *idFilter
	sharedLooks int
	// weight is about how many bytes the session takes in memory.
	weight atomic.Int64

	// lastPut is the newest commit with an artifact. It is set before that artifact can be read.
	lastPut atomic.Pointer[commit]
	// dying is the commit of the session's deletion, set before its data are removed.
	dying atomic.Pointer[commit]

	// The durable state, and what is becoming durable. mu guards both.
	mu    sync.Mutex
	soon  map[idHash]eventlog.Known // events that cannot be found in the database yet
	shown bool
	gone  bool
	seen  state         // without open calls
	kept  uint64        // bytes of artifacts
	moved chan struct{} // closed, and replaced, when any of these changes
}

// puts counts the artifacts of a segment.
type puts struct {
	last   uint64 // how many were put
	frozen uint64 // how many of the first puts forks may share
	bytes  uint64 // of those still stored, and of those that the session shared when it was made
}

// newSession makes a session whose log has the state at.
func newSession(r *record, at state, put puts) *session {
	s := &session{record: r, at: at, puts: put, kept: put.bytes, moved: make(chan struct{})}
	if at.head.Seq == r.own().base {
		s.ids = &idFilter{}
	}
	s.weigh()
	return s
}

// weigh sets weight. The slot's mu is held, or no other goroutine has the session yet.
func (s *session) weigh() {
	n := len(s.info.Settings) + s.ids.bytes() + s.shared.bytes() + len(s.links)*int(unsafe.Sizeof(link{}))
	for k, v := range s.info.Labels {
		n += len(k) + len(v)
	}
	for _, c := range s.at.head.OpenCalls {
		n += int(unsafe.Sizeof(c)) + len(c.CallID) + len(c.GroupID)
	}
	s.weight.Store(int64(n))
}

// keep publishes the size of the durable artifacts.
func (s *session) keep(bytes uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = bytes
}

// publish makes the log visible up to a durable state.
func (s *session) publish(at state) {
	at.head.OpenCalls = nil
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown, s.seen = true, at
	close(s.moved)
	s.moved = make(chan struct{})
}

// expect records new events until they can be found in the database, when the caller must call settled. settled lives
// as long as the session's newest commit, so it refers to ids and not to content.
func (s *session) expect(fresh []eventlog.FreshEvent, encoded []encodedEvent) (settled func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.soon == nil {
		s.soon = map[idHash]eventlog.Known{}
	}
	hashes := make([]idHash, len(fresh))
	for i, f := range fresh {
		hashes[i] = encoded[f.Index].idHash
		s.soon[hashes[i]] = eventlog.Known{Seq: f.Event.Seq, Digest: f.Digest, Tokens: f.Event.Tokens}
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, hash := range hashes {
			delete(s.soon, hash)
		}
	}
}

// expected looks up an event among those that expect has recorded.
func (s *session) expected(hash idHash) (eventlog.Known, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, found := s.soon[hash]
	return known, found
}

// end notifies everyone that the session is deleted.
func (s *session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
	close(s.moved)
	s.moved = make(chan struct{})
}

// deleted returns *NotFoundError if the session's data may have been removed. It waits until the deletion is durable,
// because before that a crash could take the deletion back.
func (s *session) deleted(ctx context.Context) error {
	c := s.dying.Load()
	if c == nil {
		return nil
	}
	return cmp.Or(c.wait(ctx), eventlog.NoSession(s.record.info.ID))
}

// visible reports whether there is a session that is durable and not deleted.
func (s *session) visible() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown && !s.gone
}

// head returns the newest durable event.
func (s *session) head() eventlog.Seq {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen.head.Seq
}

func (s *session) describe() eventlog.Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.record.describe(s.seen, s.kept)
}

func (r *record) describe(at state, artifactBytes uint64) eventlog.Session {
	d := r.info
	d.Incarnation = r.incarnation()
	d.Head, d.Turns, d.LogBytes, d.UpdateTime = at.head.Seq, at.head.Turns, at.bytes, at.update
	d.ArtifactBytes = artifactBytes
	if d.Head > 0 {
		d.ChainHead = bytes.Clone(at.chain[:])
	}
	return d
}
