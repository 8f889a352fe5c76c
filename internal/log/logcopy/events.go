package logcopy

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"iter"
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
)

const (
	// A batch has at most batchEvents events, and ends when it has batchBytes.
	batchEvents = 512
	batchBytes  = 1 << 20
)

// events compares the target's events after shared, appends those that are missing, and reads these again to check
// them. s is the session in the source, target the one in the target before that.
func (c *copier) events(ctx context.Context, s, target eventlog.Session, shared eventlog.Seq) error {
	if s.Head == shared {
		return nil
	}
	there, stop := iter.Pull2(c.to.Read(ctx, s.ID, shared+1, max(target.Head, 1)))
	defer stop()
	a := newAdder(c.to, target, s.UpdateTime)
	for e, err := range c.from.Read(ctx, s.ID, shared+1, s.Head) {
		if err != nil {
			return err
		}
		if e.Seq > target.Head {
			if err := a.add(ctx, e); err != nil {
				return err
			}
			continue
		}
		has, err, ok := there()
		if err != nil {
			return err
		}
		if !ok || identity(has) != identity(e) {
			return &DifferentError{s.ID, fmt.Sprintf("event %d differs", e.Seq)}
		}
	}
	if err := a.flush(ctx); err != nil {
		return err
	}
	added := s.Head - min(target.Head, s.Head)
	c.count(func(r *Report) { r.NewEvents += uint64(added) })
	if added == 0 {
		return nil
	}
	written, err := sumOf(ctx, c.to, s.ID, max(target.Head, shared)+1, s.Head)
	if err == nil && written != sum(a.sum) {
		err = &DifferentError{s.ID, fmt.Sprintf("what was written of its events from %d on is not what was read", target.Head+1)}
	}
	return err
}

// adder appends events in batches.
type adder struct {
	to      eventlog.Store
	session eventlog.Session // as it is in the store
	update  time.Time
	sum     hash.Hash // over the added events

	batch []eventlog.Event
	bytes uint64
}

func newAdder(to eventlog.Store, session eventlog.Session, update time.Time) *adder {
	return &adder{to: to, session: session, update: update, sum: sha256.New()}
}

func (a *adder) add(ctx context.Context, e eventlog.Event) error {
	one := identity(e)
	a.sum.Write(one[:])
	a.batch = append(a.batch, e)
	if a.bytes += eventlog.Size(e); len(a.batch) < batchEvents && a.bytes < batchBytes {
		return nil
	}
	return a.flush(ctx)
}

func (a *adder) flush(ctx context.Context) error {
	if len(a.batch) == 0 {
		return nil
	}
	before := a.batch[0].Seq - 1
	commit, err := a.to.Append(ctx, a.session.ID, eventlog.Batch{Events: a.batch, ExpectedHead: &before, Of: &a.session.Incarnation, Time: a.update})
	if err == nil {
		_, err = commit.Wait(ctx)
	}
	a.batch, a.bytes = nil, 0 // the store may keep the batch
	return err
}

// sumOf computes the sum of an adder of the events from..to.
func sumOf(ctx context.Context, store eventlog.Store, id string, from, to eventlog.Seq) ([sha256.Size]byte, error) {
	h := sha256.New()
	for e, err := range store.Read(ctx, id, from, to) {
		if err != nil {
			return [sha256.Size]byte{}, err
		}
		one := identity(e)
		h.Write(one[:])
	}
	return sum(h), nil
}

func sum(h hash.Hash) (out [sha256.Size]byte) {
	h.Sum(out[:0])
	return out
}

// identity hashes all of an event, including the fields that eventlog.Digest omits.
func identity(e eventlog.Event) [sha256.Size]byte {
	digest := eventlog.Digest(e)
	b := append(make([]byte, 0, 256), digest[:]...)
	number := func(n uint64) { b = binary.BigEndian.AppendUint64(b, n) }
	text := func(s string) { number(uint64(len(s))); b = append(b, s...) }
	number(uint64(e.Seq))
	number(uint64(e.Turn))
	text(e.ID)
	number(uint64(e.Time.Unix()))
	number(uint64(e.Time.Nanosecond()))
	text(e.Tokens.Tokenizer)
	number(uint64(len(e.Tokens.Blocks)))
	for _, n := range e.Tokens.Blocks {
		number(uint64(n))
	}
	if e.Tokens.Estimated {
		b = append(b, 1)
	}
	return sha256.Sum256(b)
}
