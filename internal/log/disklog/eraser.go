package disklog

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	eventlog "github.com/contextd/contextd/internal/log"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

// eraser has the deletions whose bytes must still be erased from the disk. Each is identified by the own segment of
// its session, lists all segments of the log, and has a record in the database until it is done.
type eraser struct {
	mu      sync.Mutex
	waiting map[segmentID][]segmentID
	// stuck are deletions that cannot be erased because of damage, with the error, until the store is opened again.
	stuck map[segmentID]error
	// moved is closed, and replaced, when waiting or stuck changes.
	moved chan struct{}
}

func newEraser() eraser {
	return eraser{waiting: map[segmentID][]segmentID{}, stuck: map[segmentID]error{}, moved: make(chan struct{})}
}

func (e *eraser) add(own segmentID, segments []segmentID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waiting[own] = segments
	e.announce()
}

func (e *eraser) announce() {
	close(e.moved)
	e.moved = make(chan struct{})
}

// next returns the waiting deletions, and a channel that is closed when there are others.
func (e *eraser) next() (map[segmentID][]segmentID, <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.waiting), e.moved
}

// done removes deletions from waiting; with an err, which says why they cannot be erased, they become stuck.
func (e *eraser) done(deletions map[segmentID][]segmentID, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for own := range deletions {
		delete(e.waiting, own)
		if err != nil {
			e.stuck[own] = err
		}
	}
	e.announce()
}

// left returns how many deletions are not erased yet.
func (e *eraser) left() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.waiting) + len(e.stuck)
}

// of returns whether a deletion (with own 0, any deletion) waits, and the error if it is stuck.
func (e *eraser) of(own segmentID) (waits bool, moved <-chan struct{}, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if own != 0 {
		_, waits = e.waiting[own]
		return waits, e.moved, e.stuck[own]
	}
	for _, stuck := range e.stuck {
		err = stuck
	}
	return len(e.waiting) > 0, e.moved, err
}

// WaitErased waits until a deleted session, or each of them, is gone from the disk.
func (s *Store) WaitErased(ctx context.Context, of eventlog.Incarnation) error {
	for {
		waits, moved, err := s.eraser.of(segmentID(of))
		if !waits {
			return err
		}
		select {
		case <-moved:
		case <-s.disk.halted:
			return s.failure()
		case <-s.closing:
			return eventlog.ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// eraserPause is how long erasing waits after it found no file descriptor.
const eraserPause = time.Second

// erase erases deleted sessions in the background, all that wait at once, until the store closes.
func (s *Store) erase() {
	for {
		deletions, moved := s.eraser.next()
		if len(deletions) == 0 {
			select {
			case <-moved:
				continue
			case <-s.disk.halted:
			case <-s.closing:
			}
			return
		}
		began := time.Now() //nolint:forbidigo // for the log; no data depends on it
		s.room.deletions.Add(1)
		err := s.scrub(deletions)
		s.room.deletions.Add(-1)
		switch corrupt, ok := errors.AsType[*eventlog.CorruptError](err); {
		case ok:
			s.logger.Error("bytes of deleted sessions stay on the disk, because damage keeps what is next to them from being rewritten", "sessions", len(deletions), "error", corrupt)
			err = &eventlog.CorruptError{What: "what is next to it on the disk", Reason: "it is deleted, but its bytes could not be removed: " + corrupt.Error(), Deleted: true}
		case err != nil && (s.disk.off() || s.disk.isClosing()):
			return // the next process that opens the store finishes it
		case err != nil:
			s.logger.Warn("erasing deleted sessions from the disk is tried again", "error", err)
			wait(eraserPause, s.disk.halted, s.closing)
			continue
		default:
			s.logger.Info("deleted sessions are erased from the disk", "sessions", len(deletions), "took", time.Since(began)) //nolint:forbidigo // as above
		}
		s.eraser.done(deletions, err)
	}
}

// findDeletions queues the deletions that an earlier process did not finish erasing.
func (s *Store) findDeletions() error {
	err := s.scan([]byte{keyDeletion}, []byte{keyDeletion + 1}, func(it *pebble.Iterator) error {
		value, err := it.ValueAndErr()
		if err != nil {
			return s.fail("deletions", err)
		}
		var m storagev1.Deletion
		if err := decode(it.Key(), keyDeletion, value, &m); err != nil {
			return err
		}
		var segments []segmentID
		for _, segment := range m.GetSegments() {
			segments = append(segments, segmentID(segment))
		}
		// No new segment may get the deletion's number: its content would be erased.
		own := deletionSegment(it.Key())
		s.lastSegment.Store(max(s.lastSegment.Load(), uint64(own)))
		s.eraser.add(own, segments)
		return nil
	})
	if n := s.eraser.left(); n > 0 {
		s.logger.Info("sessions that were deleted earlier are being erased from the disk", "sessions", n)
	}
	return err
}
