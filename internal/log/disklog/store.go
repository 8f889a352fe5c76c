package disklog

import (
	"bytes"
	"container/list"
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog/keyring"
)

// Store is an eventlog.Store on disk.
//
// Locks are taken in this order: open, deleting, a slot's mu (two slots in the
// order of their ids), the queue's mu, mu, a session's mu.
type Store struct {
	opts   Options
	dir    string // of the data
	disk   *haltFS
	room   *room
	aside  *asideFS
	db     *pebble.DB
	lock   io.Closer
	keys   *keyring.Keyring // nil if the store is not encrypted
	logger *slog.Logger

	// open is locked for reading by every call while it uses the database.
	open    sync.RWMutex
	closed  bool          // guarded by open
	closing chan struct{} // closed when Close begins
	// background counts the goroutines that run until Close.
	background sync.WaitGroup

	queue       groups
	written     chan *group   // groups that were applied to Pebble and are not synced yet
	drained     chan struct{} // closed when the last group is settled
	lastSegment atomic.Uint64
	pageTurns   chan struct{}

	mu     sync.Mutex
	slots  map[string]*slot
	recent *list.List // of all slots, the least recently used in front
	held   int64      // bytes of their sessions, as far as they were released once
	drops  uint64     // how many slots were dropped
	// listed caches what brief lists read of sessions without a slot, by the own segment. Whoever loads a session
	// removes its entry first, before anything can change.
	listed map[segmentID]*listedState

	// eraser erases in the background what deletions removed.
	eraser eraser
	// erasing is locked for reading by deletions, and for writing to make or end the snapshot. It is locked before
	// deleting.
	erasing  sync.RWMutex
	snapshot *Snapshot // guarded by erasing; nil if there is none

	// deleting serialises deletions, which check which sessions share a segment. A deletion holds it until it is
	// durable, so a list of sessions begins between two deletions.
	deleting sync.RWMutex
	// manifest is the number of the newest manifest that is in force.
	manifest atomic.Uint64
}

var _ eventlog.Store = (*Store)(nil)

// Capabilities returns all capabilities.
func (s *Store) Capabilities() eventlog.Capabilities {
	return eventlog.Capabilities{Chain: true, Erases: true, OneWriter: true}
}

// enter begins a call that uses the database; leave ends it.
func (s *Store) enter(ctx context.Context) error {
	s.open.RLock()
	err := s.usable()
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		s.open.RUnlock()
	}
	return err
}

func (s *Store) leave() { s.open.RUnlock() }

// enterToChange is enter for calls that change stored data.
func (s *Store) enterToChange(ctx context.Context) error {
	if s.opts.ReadOnly {
		return &eventlog.ReadOnlyError{}
	}
	return s.enter(ctx)
}

// enterToAdd is enter for calls that add data, for which there must be room.
func (s *Store) enterToAdd(ctx context.Context) error {
	if err := s.enterToChange(ctx); err != nil {
		return err
	}
	if err := s.room.refuse(); err != nil {
		s.leave()
		return err
	}
	return nil
}

// Disk returns how much room there is.
func (s *Store) Disk() Disk {
	d := s.room.look()
	d.Erasing = s.eraser.left()
	d.Damaged = s.disk.damage.count()
	return d
}

// usable returns why no call can be served now. open is held.
func (s *Store) usable() error {
	if s.closed {
		return eventlog.ErrClosed
	}
	return s.failure()
}

// failure returns the *UnavailableError of a halted store, or nil.
func (s *Store) failure() error {
	if cause := s.disk.cause(); cause != nil {
		return &eventlog.UnavailableError{Cause: cause}
	}
	return nil
}

// fail converts an error of Pebble to one of eventlog. Corruption, and a failure that may be temporary, concern only
// the call. Any other error means that the database cannot be used: it halts the store.
func (s *Store) fail(what string, err error) error {
	if failure := s.failure(); failure != nil {
		// All further errors of Pebble are a result of that.
		return failure
	}
	if corrupt, ok := errors.AsType[*eventlog.CorruptError](err); ok {
		return corrupt // a value that cannot be decrypted is corrupt already
	}
	if isDamage(err) {
		return &eventlog.CorruptError{What: what, Reason: reasonOf(err)}
	}
	if mayPass(err) {
		return &eventlog.UnavailableError{Cause: err, Passing: true}
	}
	s.disk.halt(err)
	return s.failure()
}

// get reads a framed value.
func (s *Store) get(key []byte) ([]byte, io.Closer, error) {
	value, closer, err := s.stored(key)
	if err != nil {
		return nil, nil, err
	}
	if value, err = s.unsealed(key, value); err != nil {
		return nil, nil, errors.Join(err, closer.Close())
	}
	return value, closer, nil
}

// stored reads a value as the database has it. If the value cannot be read because a Bloom filter is damaged, it
// reads it again without filters: they only save reads.
func (s *Store) stored(key []byte) ([]byte, io.Closer, error) {
	value, closer, err := s.db.Get(key)
	if err == nil && len(value) == 0 {
		// For a value that is kept apart from its key and cannot be read, Get returns an empty one, and Close the
		// error. An empty session record would be that of a deleted session.
		if err = closer.Close(); err == nil {
			return nil, io.NopCloser(nil), nil
		}
	}
	if err == nil || !isDamage(err) {
		return value, closer, err
	}
	it, iterErr := s.db.NewIter(&pebble.IterOptions{LowerBound: key, UpperBound: append(bytes.Clone(key), 0)})
	if iterErr != nil {
		return nil, nil, err
	}
	if it.First() {
		value, err = it.ValueAndErr()
	} else if err = it.Error(); err == nil {
		err = pebble.ErrNotFound
	}
	if err != nil {
		return nil, nil, errors.Join(err, it.Close())
	}
	return value, it, nil
}

// Healthy returns nil while the store takes work.
func (s *Store) Healthy() error {
	s.open.RLock()
	defer s.open.RUnlock()
	return s.usable()
}

// Close waits for running calls and commits, and releases the directory.
func (s *Store) Close() error {
	s.open.Lock()
	if s.closed {
		s.open.Unlock()
		return eventlog.ErrClosed
	}
	s.closed = true
	worked := s.failure() == nil
	close(s.closing)
	s.open.Unlock()

	s.background.Wait()
	s.queue.close()
	<-s.drained
	failure := s.failure()
	if failure == nil && !s.opts.ReadOnly {
		// The flush only saves the next opening the replay of the log.
		if err := s.db.Flush(); err != nil {
			s.logger.Warn("event log was not flushed on closing", "error", err)
		}
		failure = s.failure()
	}
	err := s.db.Close()
	inventoryErr := s.disk.inventory.close(failure == nil)
	if err == nil {
		err = inventoryErr
	}
	if closeErr := s.lock.Close(); err == nil {
		err = closeErr
	}
	if failure != nil && worked && isNoRoom(failure) {
		// Nothing is lost: what was acknowledged is in the write-ahead log.
		s.logger.Warn("event log was not tidied on closing, because the disk is full", "error", failure)
		return nil
	}
	if failure != nil {
		return failure
	}
	return err
}

// Lease grants every lease, because no other process writes to the store.
func (s *Store) Lease(ctx context.Context, id string, of eventlog.Incarnation, _ string, _ time.Duration) (bool, error) {
	return eventlog.LeaseAlone(ctx, s, id, of)
}

// Release does nothing, because no other process waits for a lease.
func (s *Store) Release(context.Context, string, eventlog.Incarnation, string) error { return nil }
