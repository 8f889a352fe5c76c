package disklog

import (
	"cmp"
	"context"
	"errors"
	"iter"

	"github.com/cockroachdb/pebble/v2"

	eventlog "github.com/contextd/contextd/internal/log"
)

// A page is the result of one read. No iterator is open between pages, so a slow reader does not prevent files from
// being removed. Pages grow, so that reading one event does not fetch a hundred.
const (
	firstPage = 8
	lastPage  = 512
	pageBytes = 1 << 20
)

// Read yields events.
func (s *Store) Read(ctx context.Context, id string, from, to eventlog.Seq) iter.Seq2[eventlog.Event, error] {
	return func(yield func(eventlog.Event, error) bool) {
		from, to, of := max(from, 1), to, eventlog.Incarnation(0)
		for size := firstPage; ; size = min(2*size, lastPage) {
			page, head, err := s.readPage(ctx, id, &of, from, to, size)
			if !yieldPage(ctx, page, err, yield) {
				return
			}
			// The log may grow while it is read; the end stays where it was.
			to = head
			from += eventlog.Seq(len(page))
			if from > to {
				return
			}
		}
	}
}

// yieldPage yields the events of a page, then err if there is one. It reports whether the caller wants more.
func yieldPage(ctx context.Context, page []eventlog.Event, err error, yield func(eventlog.Event, error) bool) bool {
	for _, e := range page {
		if err := ctx.Err(); err != nil {
			yield(eventlog.Event{}, err)
			return false
		}
		if !yield(e, nil) {
			return false
		}
	}
	if err != nil {
		yield(eventlog.Event{}, err)
		return false
	}
	return true
}

// readPage returns up to size events from..to, and where the range ends: at the head if to is 0 or after the head. A
// page ends early at a link's end, and when it is large.
func (s *Store) readPage(ctx context.Context, id string, of *eventlog.Incarnation, from, to eventlog.Seq, size int) (_ []eventlog.Event, _ eventlog.Seq, err error) {
	defer inSession(id, &err)
	if err := s.enter(ctx); err != nil {
		return nil, 0, err
	}
	defer s.leave()
	sl, found, err := s.findAgain(id, of)
	if err != nil {
		return nil, 0, err
	}
	defer s.release(sl)
	if head := found.head(); to == 0 || to > head {
		to = head
	}
	if from > to {
		return nil, to, nil
	}
	for _, l := range found.links {
		if from > l.base && from <= l.upTo {
			page, err := s.readLink(l, from, min(to, l.upTo), size)
			if err != nil {
				err = cmp.Or(found.deleted(ctx), err)
			}
			return page, to, err
		}
	}
	return nil, to, &eventlog.CorruptError{What: describeKey(sessionKey(id)), Reason: "its links leave out an event"}
}

// ReadRuns implements eventlog.RunsReader. It reads each page with one iterator.
func (s *Store) ReadRuns(ctx context.Context, id string, runs eventlog.Ranges) iter.Seq2[eventlog.Event, error] {
	return func(yield func(eventlog.Event, error) bool) {
		of := eventlog.Incarnation(0)
		for len(runs) > 0 {
			page, rest, err := s.readRuns(ctx, id, &of, runs)
			if !yieldPage(ctx, page, err, yield) {
				return
			}
			runs = rest
		}
	}
}

// readRuns reads one page of runs, at most up to a link's end, and returns the runs that remain to be read.
func (s *Store) readRuns(ctx context.Context, id string, of *eventlog.Incarnation, runs eventlog.Ranges) (page []eventlog.Event, rest eventlog.Ranges, err error) {
	defer inSession(id, &err)
	if err := s.enter(ctx); err != nil {
		return nil, nil, err
	}
	defer s.leave()
	sl, found, err := s.findAgain(id, of)
	if err != nil {
		return nil, nil, err
	}
	defer s.release(sl)
	rest = runs.UpTo(found.head())
	if len(rest) == 0 {
		return nil, nil, nil
	}
	from := rest[0].From
	for _, l := range found.links {
		if from > l.base && from <= l.upTo {
			page, rest, err = s.readLinkRuns(l, rest)
			if err != nil {
				err = cmp.Or(found.deleted(ctx), err)
			}
			return page, rest, err
		}
	}
	return nil, nil, &eventlog.CorruptError{What: describeKey(sessionKey(id)), Reason: "its links leave out an event"}
}

// readLinkRuns reads one page of runs that begin in the link, and returns the remaining runs, in the memory of rest.
func (s *Store) readLinkRuns(l link, rest eventlog.Ranges) (page []eventlog.Event, _ eventlog.Ranges, err error) {
	defer s.pageTurn()()
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: eventKey(l.segment, rest[0].From), UpperBound: eventKey(l.segment, min(rest[len(rest)-1].To, l.upTo)+1)})
	if err != nil {
		return nil, nil, s.fail("events", err)
	}
	defer it.Close()
	last := eventlog.Seq(0)
	for read := 0; len(rest) > 0 && rest[0].From <= l.upTo && len(page) < lastPage && read < pageBytes; {
		next := rest[0].From
		var found bool
		if last > 0 && next == last+1 {
			found = it.Next()
		} else {
			found = it.SeekGE(eventKey(l.segment, next))
		}
		if err := it.Error(); err != nil {
			return page, nil, s.fail("events", err)
		}
		if !found || keySeq(it.Key()) != next {
			return page, nil, missing(l, next)
		}
		value, err := s.valueOf(it)
		if err != nil {
			return page, nil, err
		}
		e, err := decodeEvent(it.Key(), value)
		if err != nil {
			return page, nil, err
		}
		page, read, last = append(page, e), read+len(value), next
		if rest[0].From++; rest[0].From > rest[0].To {
			rest = rest[1:]
		}
	}
	return page, rest, nil
}

// readLink reads up to size of the events from..to, all of which are in the link.
func (s *Store) readLink(l link, from, to eventlog.Seq, size int) ([]eventlog.Event, error) {
	defer s.pageTurn()()
	last := min(to, from+eventlog.Seq(size)-1)
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: eventKey(l.segment, from), UpperBound: eventKey(l.segment, last+1)})
	if err != nil {
		return nil, s.fail("events", err)
	}
	defer it.Close()
	page := make([]eventlog.Event, 0, last-from+1)
	next, read := from, 0
	for ok := it.First(); ok && read < pageBytes; ok = it.Next() {
		value, err := s.valueOf(it)
		if err != nil {
			return page, err
		}
		if keySeq(it.Key()) != next {
			break
		}
		e, err := decodeEvent(it.Key(), value)
		if err != nil {
			return page, err
		}
		page = append(page, e)
		next++
		read += len(value)
	}
	if err := it.Error(); err != nil {
		return page, s.fail("events", err)
	}
	if next <= last && read < pageBytes {
		return page, missing(l, next)
	}
	return page, nil
}

func missing(l link, seq eventlog.Seq) error {
	return &eventlog.CorruptError{What: describeKey(eventKey(l.segment, seq)), Reason: "it is missing"}
}

// event reads one event.
func (s *Store) event(l link, seq eventlog.Seq) (eventlog.Event, error) {
	key := eventKey(l.segment, seq)
	value, closer, err := s.get(key)
	switch {
	case errors.Is(err, pebble.ErrNotFound):
		return eventlog.Event{}, missing(l, seq)
	case err != nil:
		return eventlog.Event{}, s.fail(describeKey(key), err)
	}
	defer closer.Close()
	return decodeEvent(key, value)
}

// WaitPast waits until the head is not seq.
func (s *Store) WaitPast(ctx context.Context, id string, seq eventlog.Seq) (_ eventlog.Seq, err error) {
	defer inSession(id, &err)
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	sl, found, err := s.find(id)
	s.leave()
	if err != nil {
		return 0, err
	}
	defer s.release(sl)
	for {
		found.mu.Lock()
		head, gone, moved := found.seen.head.Seq, found.gone, found.moved
		found.mu.Unlock()
		switch {
		case gone:
			return 0, eventlog.NoSession(id)
		case head != seq:
			return head, nil
		}
		select {
		case <-moved:
		case <-s.closing:
			return 0, eventlog.ErrClosed
		case <-s.disk.halted:
			return 0, s.failure()
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}
