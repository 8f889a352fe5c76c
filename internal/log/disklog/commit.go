package disklog

import (
	"context"

	"github.com/cockroachdb/pebble/v2"
	eventlog "github.com/contextd/contextd/internal/log"
)

// commit is a batch on its way to the disk.
type commit struct {
	batch *pebble.Batch
	slot  *slot
	// durable is called, in the order of the commits, once the batch is durable
	// and before anyone learns of it.
	durable func()
	err     error // set before done is closed
	done    chan struct{}
}

// submit hands a batch to Pebble and returns without waiting for the disk. The
// slot's mu is held. before is called just before the batch can be read.
func (s *Store) submit(sl *slot, batch *pebble.Batch, durable func(), before func(*commit)) *commit {
	c := &commit{batch: batch, slot: sl, durable: durable, done: make(chan struct{})}
	if before != nil {
		before(c)
	}
	s.retain(sl)
	if err := s.db.ApplyNoSyncWait(batch, pebble.Sync); err != nil {
		// Pebble refuses a batch only if it is misused or has failed; either way
		// nothing is known of what it did.
		s.disk.halt(err)
	}
	s.commits <- c
	return c
}

// settle waits for the commits in turn. It runs until Close.
func (s *Store) settle() {
	defer close(s.drained)
	for c := range s.commits {
		if err := c.batch.SyncWait(); err != nil {
			s.disk.halt(err)
		}
		// A halted disk reports success: see haltFS.
		if c.err = s.failure(); c.err == nil {
			c.durable()
			_ = c.batch.Close() // only gives its memory back
		}
		close(c.done)
		s.release(c.slot)
	}
}

// wait returns when the commit is durable, or with the reason that it is not
// known to be. A nil commit is durable.
func (c *commit) wait(ctx context.Context) error {
	if c == nil {
		return nil
	}
	select {
	case <-c.done:
		return c.err
	default:
	}
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// appended is the commit of an append.
type appended struct {
	commit   *commit
	receipts []eventlog.Receipt
}

// Wait returns the receipts once the batch is durable.
func (a appended) Wait(ctx context.Context) ([]eventlog.Receipt, error) {
	if err := a.commit.wait(ctx); err != nil {
		return nil, err
	}
	return a.receipts, nil
}
