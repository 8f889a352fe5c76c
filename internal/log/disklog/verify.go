package disklog

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	eventlog "github.com/contextd/contextd/internal/log"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

// Verify reads a session's whole log, as it is durable at the call, and checks
// everything that is derivable: seqs are dense, the chain holds, the events pass
// the rules of admission again, and every head and index record says what
// follows from the events. It returns nil or a *CorruptError that names the first
// record at fault.
func (s *Store) Verify(ctx context.Context, id string) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	sl, found, err := s.find(id)
	if err != nil {
		return err
	}
	defer s.release(sl)
	head := found.head()
	var at state
	for _, l := range found.links {
		if at, err = s.verifyLink(ctx, l, at, min(head, l.upTo)); err != nil {
			if found.dying.Load() {
				return noSession(id)
			}
			return err
		}
	}
	if at.head.Seq != head {
		return missing(found.own(), at.head.Seq+1)
	}
	return nil
}

// verifyLink checks a link's events up to seq to and returns the state behind
// them; at is the state before.
func (s *Store) verifyLink(ctx context.Context, l link, at state, to eventlog.Seq) (state, error) {
	if at.head.Seq < min(l.base, to) {
		return at, missing(l, at.head.Seq+1)
	}
	if to <= l.base {
		return at, nil
	}
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: eventKey(l.segment, l.base+1), UpperBound: eventKey(l.segment, to+1)})
	if err != nil {
		return at, s.fail("events", err)
	}
	defer it.Close()
	var open []eventlog.OpenCall
	for ok := it.First(); ok; ok = it.Next() {
		if err := ctx.Err(); err != nil {
			return at, err
		}
		if isHead(it.Key()) || keySeq(it.Key()) != at.head.Seq+1 {
			return at, missing(l, at.head.Seq+1)
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return at, s.fail(describeKey(it.Key()), err)
		}
		if at, err = s.verifyEvent(l, at, it.Key(), value); err != nil {
			return at, err
		}
		it.Next()
		if open, err = s.verifyHead(l, at, open, it); err != nil {
			return at, err
		}
	}
	if err := it.Error(); err != nil {
		return at, s.fail("events", err)
	}
	if at.head.Seq != to {
		return at, missing(l, at.head.Seq+1)
	}
	return at, nil
}

// verifyEvent checks an event on its own and returns the state behind it.
func (s *Store) verifyEvent(l link, at state, key, value []byte) (state, error) {
	e, err := decodeEvent(key, value)
	if err != nil {
		return at, err
	}
	head, admitted, err := at.head.Admit([]eventlog.Event{e})
	if err != nil {
		return at, &eventlog.CorruptError{What: describeKey(key), Reason: fmt.Sprintf("it breaks the rules of admission: %v", err)}
	}
	if admitted[0].Turn != e.Turn {
		return at, &eventlog.CorruptError{What: describeKey(key), Reason: fmt.Sprintf(
			"it says turn %d where turn %d follows from the log", e.Turn, admitted[0].Turn)}
	}
	at.head = head
	at.bytes += eventlog.Size(e)
	at.chain = chainOver(at.chain, value)
	return at, s.verifyIndex(l, e)
}

// verifyHead checks the head that an iterator stands on against what follows from
// the events. open is what the heads before it say of open calls; it returns what
// they say with this one.
func (s *Store) verifyHead(l link, at state, open []eventlog.OpenCall, it *pebble.Iterator) ([]eventlog.OpenCall, error) {
	key := headKey(l.segment, at.head.Seq)
	corrupt := func(reason string) ([]eventlog.OpenCall, error) {
		return nil, &eventlog.CorruptError{What: describeKey(key), Reason: reason}
	}
	if !it.Valid() || !bytes.Equal(it.Key(), key) {
		return corrupt("it is missing")
	}
	m, err := s.headUnder(it)
	if err != nil {
		return nil, err
	}
	if at.head.Seq == l.base+1 && !m.GetComplete() {
		return corrupt("it is the segment's first and not complete")
	}
	open = applyHead(open, at.head.Seq, m)
	stored := stateOf(at.head.Seq, m, open, 0)
	switch {
	case stored.chain != at.chain:
		return corrupt("the hash chain breaks: its event, or one before it, is not what was written")
	case stored.head.Turns != at.head.Turns || stored.head.LastGroup != at.head.LastGroup ||
		stored.bytes != at.bytes || !slices.Equal(stored.head.OpenCalls, at.head.OpenCalls):
		return corrupt("it does not follow from the events")
	}
	return open, nil
}

func (s *Store) verifyIndex(l link, e eventlog.Event) error {
	key := indexKey(l.segment, eventIDHash(e.ID))
	value, closer, err := s.db.Get(key)
	if err != nil {
		return &eventlog.CorruptError{What: "index of " + describeKey(eventKey(l.segment, e.Seq)), Reason: err.Error()}
	}
	defer closer.Close()
	var m storagev1.Index
	if err := decode(key, keyIndex, value, &m); err != nil {
		return err
	}
	digest := eventlog.Digest(e)
	if eventlog.Seq(m.GetSeq()) != e.Seq || !bytes.Equal(m.GetDigest(), digest[:]) {
		return &eventlog.CorruptError{What: "index of " + describeKey(eventKey(l.segment, e.Seq)), Reason: "it does not follow from the event"}
	}
	return nil
}
