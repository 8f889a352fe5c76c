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

	// What has been admitted; guarded by the slot's mu.
	at    state
	puts  puts
	last  *commit
	ids   *idFilter // of the own segment; nil until it is filled
	looks int       // how often it was missed
	// shared is the filter of the other segments, and sharedLooks how often it was missed.
	shared      *idFilter
	sharedLooks int
	// weight is about how many bytes the session takes in memory.
	weight atomic.Int64

	// lastPut is the newest commit of an artifact. It is set before the artifact
	// can be read.
	lastPut atomic.Pointer[commit]
	// dying is the session's deletion, set before its data goes away.
	dying atomic.Pointer[commit]

	// What is durable, and what is about to be.
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
	frozen uint64 // of which so many may be shared by forks
	bytes  uint64 // of those that are still there, and of those that were shared from the first
}

// newSession makes a session whose own segment is as long as at says.
func newSession(r *record, at state, put puts) *session {
	s := &session{record: r, at: at, puts: put, kept: put.bytes, moved: make(chan struct{})}
	if at.head.Seq == r.own().base {
		s.ids = &idFilter{}
	}
	s.weigh()
	return s
}

// weigh counts what the session takes. The slot's mu is held, or nobody else knows the
// session.
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

// keep shows how many bytes the artifacts take that are durable.
func (s *session) keep(bytes uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = bytes
}

// publish shows the log up to a state that is durable.
func (s *session) publish(at state) {
	at.head.OpenCalls = nil
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown, s.seen = true, at
	close(s.moved)
	s.moved = make(chan struct{})
}

// expect remembers events until they can be found in the database, which is when
// the function that it returns is called. The function lives as long as the session's
// newest commit, so it holds on to no content.
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

// expected finds an event among those.
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

// deleted is a *NotFoundError where the session's data may be gone. It waits for the deletion, which
// a crash may take back until it is durable.
func (s *session) deleted(ctx context.Context) error {
	c := s.dying.Load()
	if c == nil {
		return nil
	}
	return cmp.Or(c.wait(ctx), noSession(s.record.info.ID))
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

// head is the newest durable event.
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
