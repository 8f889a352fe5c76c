package pglog

import (
	"container/list"
	"context"
	"slices"
	"sync"

	eventlog "github.com/contextd/contextd/internal/log"
)

// A process caches what it read and wrote of recently used sessions, for two purposes. A write is first tried on the
// cached state without reading, because its commit decides whether that still holds. And the reads within one call
// (eventlog.OneCall) use the cache once the first of them has found the session unchanged.
//
// The cache has one version of a session. A version is a count with random digits after it: if a failover takes back
// writes that were not acknowledged, another write that reaches the same count has other digits. Incarnations have
// random digits, too, because a restored backup takes back their sequence.

// versionDigits is how many versions share a count.
const versionDigits = 1 << 24

// firstVersion and nextVersion are SQL for a version with count 0, and for the next version.
const (
	firstVersion = `floor(random() * 16777216)::bigint`
	nextVersion  = `(version / 16777216 + 1) * 16777216 + ` + firstVersion
	// nextIncarnation is SQL for a new incarnation, or for a number that no other process has.
	nextIncarnation = `nextval('contextd_incarnations') * 16777216 + ` + firstVersion
)

// known has what is cached of a session. It is immutable.
type known struct {
	session *session
	tails   map[string]tail // of artifacts, by kind
	// read is the last event up to which the whole log was read, and readBytes the log's size up to there; noNews if
	// it was not.
	read, readBytes int64
	// looked is the head at the last call's check; 0 if there was none.
	looked int64
}

// tail has the newest artifacts of a kind, oldest first; all of them if complete.
type tail struct {
	artifacts []eventlog.Artifact
	complete  bool
}

const (
	// tailLength is how many artifacts of a kind are read into the cache; tailBytes bounds their size together.
	tailLength = firstPage
	tailBytes  = 64 << 10
	// knownBytes bounds the cache of all sessions.
	knownBytes = 32 << 20
	// knownOverhead is about how many bytes a session takes besides its artifacts.
	knownOverhead = 2 << 10
)

func (k *known) size() int {
	size := knownOverhead + int(k.session.size())
	for kind, t := range k.tails {
		size += len(kind) + t.size()
	}
	return size
}

func (t tail) size() (size int) {
	for _, a := range t.artifacts {
		size += int(a.Size()) + 64
	}
	return size
}

// size returns about how many bytes a session's labels, settings and open calls take.
func (s *session) size() uint64 {
	size := uint64(len(s.info.Settings) + 64*len(s.shared))
	for k, v := range s.info.Labels {
		size += uint64(len(k) + len(v))
	}
	return size + 128*uint64(len(s.at.head.OpenCalls))
}

// after reports whether an artifact is ordered after another of its kind.
func after(a eventlog.Artifact, seq eventlog.Seq, id string) bool {
	return a.Seq > seq || a.Seq == seq && a.ID > id
}

// trimmed drops the oldest artifacts until the tail is within its bounds.
func (t tail) trimmed() tail {
	for len(t.artifacts) > 2*tailLength || len(t.artifacts) > 0 && t.size() > tailBytes {
		t.artifacts, t.complete = t.artifacts[1:], false
	}
	return t
}

// covers reports whether all artifacts of the kind from a place on are in the tail.
func (t tail) covers(seq eventlog.Seq, id string) bool {
	return t.complete || len(t.artifacts) > 0 && !after(t.artifacts[0], seq, id)
}

// with adds an artifact that was put, or replaces it.
func (t tail) with(a eventlog.Artifact) tail {
	if !t.covers(a.Seq, a.ID) {
		return t
	}
	a.Of, a.New = 0, false
	at, there := slices.BinarySearchFunc(t.artifacts, a, func(b, a eventlog.Artifact) int {
		switch {
		case after(b, a.Seq, a.ID):
			return 1
		case after(a, b.Seq, b.ID):
			return -1
		}
		return 0
	})
	t.artifacts = slices.Clone(t.artifacts)
	if there {
		t.artifacts[at] = a
	} else {
		t.artifacts = slices.Insert(t.artifacts, at, a)
	}
	return t.trimmed()
}

// selects reports whether an artifact is in the query's range.
func selects(q eventlog.ArtifactQuery, a eventlog.Artifact) bool {
	switch {
	case a.Seq < q.From || q.To != 0 && a.Seq > q.To:
		return false
	case q.After == nil:
		return true
	case q.Reverse:
		return after(*q.After, a.Seq, a.ID)
	default:
		return after(a, q.After.Seq, q.After.ID)
	}
}

// memory is the cache of all sessions: the least recently used is evicted.
type memory struct {
	mu    sync.Mutex
	of    map[string]*list.Element // of *remembered
	order list.List                // used last first
	bytes int
}

type remembered struct {
	id   string
	size int
	*known
}

func (m *memory) get(id string) *known {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.of[id]
	if !ok {
		return nil
	}
	m.order.MoveToFront(e)
	return e.Value.(*remembered).known
}

// change replaces the cached state of a session by f of it. nil means nothing is cached.
func (m *memory) change(id string, f func(*known) *known) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var old *known
	e, ok := m.of[id]
	if ok {
		old = e.Value.(*remembered).known
	}
	now := f(old)
	if now == old {
		return
	}
	if ok {
		m.drop(e)
	}
	if now == nil {
		return
	}
	r := &remembered{id, len(id) + now.size(), now}
	if m.of == nil {
		m.of = map[string]*list.Element{}
	}
	m.of[id] = m.order.PushFront(r)
	for m.bytes += r.size; m.bytes > knownBytes; {
		m.drop(m.order.Back())
	}
}

func (m *memory) drop(e *list.Element) {
	r := m.order.Remove(e).(*remembered)
	delete(m.of, r.id)
	m.bytes -= r.size
}

func (m *memory) forget(id string) { m.change(id, func(*known) *known { return nil }) }

// isAfter reports whether the session's state is later than another.
func (s *session) isAfter(other *session) bool {
	return s.incarnation() > other.incarnation() ||
		s.incarnation() == other.incarnation() && s.version/versionDigits > other.version/versionDigits
}

func (s *session) same(other *session) bool {
	return s.incarnation() == other.incarnation() && s.version == other.version
}

// found caches a session that was read. If what was read is older than the cached state, a failover may have taken
// the cached state back: then nothing is cached.
func (m *memory) found(now *session) {
	m.change(now.info.ID, func(old *known) *known {
		switch {
		case old == nil || now.incarnation() > old.session.incarnation():
			return &known{session: now, read: noNews}
		case now.isAfter(old.session):
			return &known{session: now, read: old.read, readBytes: old.readBytes, looked: old.looked}
		case now.same(old.session):
			return old
		}
		return nil
	})
}

// wrote caches a session after a write, now, which was made on its state before, and the artifacts that were put.
func (m *memory) wrote(before, now *session, put []eventlog.Artifact) {
	m.change(now.info.ID, func(old *known) *known {
		if old != nil && !old.session.same(before) {
			if old.session.isAfter(now) {
				return old
			}
			old = nil
		}
		next := &known{session: now, tails: map[string]tail{}, read: noNews}
		if old != nil {
			next.read, next.readBytes, next.looked = old.read, old.readBytes, old.looked
			for kind, t := range old.tails {
				next.tails[kind] = t
			}
		}
		for _, a := range put {
			if t, ok := next.tails[a.Kind]; ok {
				next.tails[a.Kind] = t.with(a)
			}
		}
		return next
	})
}

// read caches the tail of a kind that was read at a version of the session, if that is the cached version.
func (m *memory) read(id string, incarnation, version int64, kind string, t tail) {
	m.change(id, func(old *known) *known {
		if old == nil || old.session.incarnation() != incarnation || old.session.version != version {
			return old
		}
		next := &known{session: old.session, tails: map[string]tail{kind: t.trimmed()}, read: old.read, readBytes: old.readBytes, looked: old.looked}
		for k, t := range old.tails {
			if k != kind {
				next.tails[k] = t
			}
		}
		return next
	})
}

// readTo records that the log was read up to the session's head.
func (m *memory) readTo(of *session) {
	m.change(of.info.ID, func(old *known) *known {
		if old == nil || old.session.incarnation() != of.incarnation() || old.read == int64(of.info.Head) {
			return old
		}
		next := *old
		next.read, next.readBytes = int64(of.info.Head), int64(of.at.bytes)
		return &next
	})
}

// look records that a call has checked the session.
func (m *memory) look(at *session) {
	m.change(at.info.ID, func(old *known) *known {
		if old == nil || old.session.incarnation() != at.incarnation() || old.looked == int64(at.info.Head) {
			return old
		}
		next := *old
		next.looked = int64(at.info.Head)
		return &next
	})
}

// look has what a call read when it checked a session: the events after the last one read before, and the chain after
// the event that was the head at the previous call's check.
type look struct {
	of     int64 // the incarnation
	news   []storedEvent
	before int64
	chain  []byte // nil if there is no such event in the session's own segment
}

// newsFrom returns the look's events from seq on; nil if it does not have that event.
func (l *look) newsFrom(seq, of int64) []storedEvent {
	if l == nil || l.of != of {
		return nil
	}
	at := slices.IndexFunc(l.news, func(e storedEvent) bool { return e.Seq == seq })
	if at < 0 {
		return nil
	}
	return l.news[at:]
}

type lookKey struct {
	s  *Store
	id string
}

// looked returns the cached session if the call has already checked it, or need not (eventlog.FromMemory). If it
// returns nil, the caller must load the session.
func (s *Store) looked(ctx context.Context, id string) (*known, *look) {
	var l *look
	if call := eventlog.CallOf(ctx); call != nil {
		if found, ok := call.Load(lookKey{s, id}); ok {
			l = found.(*look)
		}
	}
	if l == nil && !eventlog.IsFromMemory(ctx) {
		return nil, nil
	}
	if k := s.memory.get(id); k != nil {
		return k, l
	}
	return nil, nil
}
