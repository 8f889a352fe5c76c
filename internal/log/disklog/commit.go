package disklog

import (
	"context"
	"runtime"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	eventlog "github.com/contextd/contextd/internal/log"
)

// commit is a change on its way to the disk.
type commit struct {
	group *group
	// durable is called, in the order of the commits, when the change is durable and before its waiters are notified.
	// It may be nil.
	durable func()
	// slots are kept in memory until the change is durable: before that, a reload from disk would miss it.
	slots []*slot
}

// wait returns nil when the commit is durable, or the error because of which that is unknown. A nil commit is
// durable.
func (c *commit) wait(ctx context.Context) error {
	if c == nil {
		return nil
	}
	select {
	case <-c.group.settled:
		return c.group.err
	default:
	}
	select {
	case <-c.group.settled:
		return c.group.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// group is several commits that are written and synced together.
type group struct {
	batch   *pebble.Batch
	bytes   int // total size of the batches in it
	commits []*commit
	applied bool  // Pebble has it
	err     error // set before settled is closed
	settled chan struct{}
}

const (
	// A change of at most smallBytes joins a group of at most groupBytes: that
	// costs a copy and saves Pebble's work for a batch of its own.
	smallBytes = 4 << 10
	groupBytes = 128 << 10
	// queueBytes bounds the queue of groups that wait to be written, except that one group may always wait.
	queueBytes = 32 << 20
	// maxUnsynced is how many groups may be written and wait for their sync.
	maxUnsynced = 128
)

// groups is the queue of changes to be written, in order. One goroutine writes at a time. If nobody writes, the
// caller of add writes its own change at once. Changes that come meanwhile join groups, which the store's own
// goroutine writes. Groups that were written while the disk was busy share its next sync.
type groups struct {
	mu      sync.Mutex
	changed sync.Cond
	waiting []*group
	bytes   int  // of the groups in waiting
	writing bool // somebody writes
	handed  bool // the store's goroutine must write the waiting groups
	closed  bool
}

// add puts a change into the queue. It calls before while the change cannot be read from the database yet. If add
// returns a group, the caller must write it and then call wrote.
func (q *groups) add(batch *pebble.Batch, c *commit, before func(*commit)) (*group, error) {
	size := batch.Len()
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) > 0 && q.bytes+size > queueBytes {
		q.changed.Wait()
	}
	g, joined, err := q.join(batch, size)
	if err != nil {
		return nil, err
	}
	lead := false
	if !joined {
		g = &group{batch: batch, settled: make(chan struct{})}
		if lead = !q.writing; !lead {
			q.waiting = append(q.waiting, g)
		}
	}
	g.commits = append(g.commits, c)
	c.group = g
	if before != nil {
		before(c)
	}
	if lead {
		q.writing = true
		return g, nil
	}
	g.bytes += size
	q.bytes += size
	return nil, nil
}

// wrote ends the writing of a group that add returned.
func (q *groups) wrote() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.writing = false
		return
	}
	q.handed = true
	q.changed.Broadcast()
}

// join puts a batch into the newest group, if both are small.
func (q *groups) join(batch *pebble.Batch, size int) (g *group, joined bool, err error) {
	if len(q.waiting) == 0 || size > smallBytes {
		return nil, false, nil
	}
	g = q.waiting[len(q.waiting)-1]
	if g.bytes+size > groupBytes {
		return nil, false, nil
	}
	if err := g.batch.Apply(batch, nil); err != nil {
		return nil, false, err
	}
	_ = batch.Close() // only gives its memory back
	return g, true, nil
}

// next takes the oldest group for the store's goroutine; nil when the queue is closed and empty. The group of the
// previous call must have been written.
func (q *groups) next() *group {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.handed && len(q.waiting) == 0 {
		q.handed, q.writing = false, false
	}
	for !q.handed {
		if q.closed {
			return nil
		}
		q.changed.Wait()
	}
	g := q.waiting[0]
	q.waiting = q.waiting[1:]
	q.bytes -= g.bytes
	q.changed.Broadcast()
	return g
}

func (q *groups) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.changed.Broadcast()
}

// submit queues a change for writing, and does not wait for the disk. The slots' mu are held, so that a session's
// changes keep their order.
func (s *Store) submit(batch *pebble.Batch, durable func(), before func(*commit), slots ...*slot) (*commit, error) {
	c := &commit{durable: durable, slots: slots}
	for _, sl := range slots {
		s.retain(sl)
	}
	g, err := s.queue.add(batch, c, before)
	if err != nil {
		for _, sl := range slots {
			s.release(sl)
		}
		return nil, err
	}
	if g != nil {
		s.writeGroup(g)
		s.queue.wrote()
	}
	return c, nil
}

// writeGroup gives a group to Pebble.
func (s *Store) writeGroup(g *group) {
	s.guarded("writing", func() {
		if err := s.db.ApplyNoSyncWait(g.batch, pebble.Sync); err != nil {
			// Pebble refuses a batch only if it is misused or has failed. In both cases it is unknown what it did.
			s.disk.halt(err)
			return
		}
		g.applied = true
	})
	s.written <- g
}

// write writes the groups that callers of add did not write themselves. It runs until Close.
func (s *Store) write() {
	defer close(s.written)
	for {
		// Yield first: goroutines that are about to add changes fill the group, and a fuller group costs the same
		// sync.
		runtime.Gosched()
		g := s.queue.next()
		if g == nil {
			return
		}
		s.writeGroup(g)
	}
}

// settle waits for the groups in turn and notifies their waiters. It runs until Close.
func (s *Store) settle() {
	defer close(s.drained)
	for g := range s.written {
		s.settleGroup(g)
	}
}

func (s *Store) settleGroup(g *group) {
	s.guarded("settling", func() {
		if g.applied {
			if err := g.batch.SyncWait(); err != nil {
				s.disk.halt(err)
			}
		}
		// A halted disk reports success: see haltFS.
		if s.disk.off() {
			return
		}
		for _, c := range g.commits {
			if c.durable != nil {
				c.durable()
			}
		}
		_ = g.batch.Close() // only gives its memory back
	})
	g.err = s.failure()
	close(g.settled)
	for _, c := range g.commits {
		for _, sl := range c.slots {
			s.release(sl)
		}
	}
}

// appended is the commit of an append.
type appended struct {
	commit   *commit
	receipts []eventlog.Receipt
}

// Wait returns the receipts when the batch is durable.
func (a appended) Wait(ctx context.Context) ([]eventlog.Receipt, error) {
	if err := a.commit.wait(ctx); err != nil {
		return nil, err
	}
	return a.receipts, nil
}
