package disklog

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	eventlog "github.com/contextd/contextd/internal/log"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

// Verify reads a session's whole durable log and checks everything that can be derived from the events: seqs have no
// gaps, the chain is right, the events pass the rules of admission, and every head and index record is what follows
// from the events. It returns nil or a *CorruptError that names the first wrong record.
func (s *Store) Verify(ctx context.Context, id string) (err error) {
	defer inSession(id, &err)
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
			return cmp.Or(found.deleted(ctx), err)
		}
	}
	if at.head.Seq != head {
		return missing(found.own(), at.head.Seq+1)
	}
	return nil
}

// VerifyArtifacts reads all artifacts that a session shows.
func (s *Store) VerifyArtifacts(ctx context.Context, id string) error {
	kinds, err := s.ArtifactKinds(ctx, id)
	for _, kind := range kinds {
		for _, err := range s.Artifacts(ctx, id, eventlog.ArtifactQuery{Kind: kind}) {
			if err != nil {
				return err
			}
		}
	}
	return err
}

// verifyLink checks a link's events up to seq to, and returns the state after them. at is the state before them.
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
	recorded := at
	for ok := it.First(); ok; ok = it.Next() {
		if err := ctx.Err(); err != nil {
			return at, err
		}
		if keySeq(it.Key()) != at.head.Seq+1 {
			return at, missing(l, at.head.Seq+1)
		}
		value, err := s.valueOf(it)
		if err != nil {
			return at, err
		}
		if at, err = s.verifyEvent(l, at, &recorded, it.Key(), value); err != nil {
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

// verifyEvent checks an event and its head, and returns the state after it. recorded is the state by the stored
// heads; it is moved past this event, too.
func (s *Store) verifyEvent(l link, at state, recorded *state, key, value []byte) (state, error) {
	corrupt := func(reason string) (state, error) {
		return at, &eventlog.CorruptError{What: describeKey(key), Reason: reason}
	}
	e, m, err := decodeRecord(key, value)
	if err != nil {
		return at, err
	}
	head, _, err := at.head.Admit([]eventlog.Event{e})
	if err != nil {
		return corrupt(fmt.Sprintf("it breaks the rules of admission: %v", err))
	}
	if at.head.Seq == l.base && !m.GetComplete() {
		return corrupt("it is the segment's first and its head is not complete")
	}
	recorded.applyHead(e.Seq, m, len(value))
	covered := value[frameSize : len(value)-len(at.chain)]
	switch {
	case chainOver(at.chain, covered) != recorded.chain || !bytes.HasSuffix(value, recorded.chain[:]):
		return corrupt("the hash chain breaks: it, or an event before it, is not what was written")
	case recorded.head.Turns != head.Turns || recorded.head.LastGroup != head.LastGroup ||
		recorded.bytes != at.bytes+eventlog.Size(e) || !slices.Equal(recorded.head.OpenCalls, head.OpenCalls):
		return corrupt("its head does not follow from the events")
	}
	at = *recorded
	at.head = head
	return at, s.verifyIndex(l, e)
}

func (s *Store) verifyIndex(l link, e eventlog.Event) error {
	key := indexKey(l.segment, eventIDHash(e.ID))
	value, closer, err := s.get(key)
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
