package disklog

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	eventlog "github.com/contextd/contextd/internal/log"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

// Append admits a batch.
func (s *Store) Append(ctx context.Context, id string, b eventlog.Batch) (eventlog.Commit, error) {
	if err := eventlog.ValidateSessionID("session_id", id); err != nil {
		return nil, err
	}
	prepared, err := eventlog.Prepare(b)
	if err != nil {
		return nil, err
	}
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	encoded, err := encodeEvents(prepared.Events())
	if err != nil {
		return nil, err
	}
	sl, err := s.acquire(id)
	if err != nil {
		return nil, err
	}
	defer s.release(sl)
	sl.mu.Lock()
	defer sl.mu.Unlock()

	target := sl.session.Load()
	created := target == nil
	if created {
		own := link{segment: segmentID(s.lastSegment.Add(1)), upTo: unbounded, puts: unbounded}
		target = newSession(newRecord(eventlog.Session{ID: id, CreateTime: b.Time}, []link{own}), state{})
	}
	admission, err := prepared.Admit(target.at.head, s.lookupIn(target))
	if err != nil {
		return nil, err
	}
	if len(admission.Fresh) == 0 {
		// The events may be on their way still.
		return appended{target.last, admission.Receipts}, nil
	}
	batch := s.db.NewBatch()
	if created {
		if err := putSession(batch, target.record); err != nil {
			return nil, err
		}
	}
	at := target.at
	at.update = b.Time.UTC().Round(0)
	for _, f := range admission.Fresh {
		if at, err = putEvent(batch, target.own(), at, f, encoded[f.Index]); err != nil {
			return nil, err
		}
	}
	target.at = at
	target.last = s.submit(sl, batch, func() { target.publish(at) }, nil)
	if created {
		sl.session.Store(target)
	}
	return appended{target.last, admission.Receipts}, nil
}

// encodeEvents does the expensive part of storing before the session is locked.
func encodeEvents(events []eventlog.Event) ([][]byte, error) {
	encoded := make([][]byte, len(events))
	for i, e := range events {
		var err error
		if encoded[i], err = appendEvent(nil, e); err != nil {
			return nil, fmt.Errorf("encode events[%d]: %w", i, err)
		}
	}
	return encoded, nil
}

// putSession writes a new session: its record and its references.
func putSession(batch *pebble.Batch, r *record) error {
	key := sessionKey(r.info.ID)
	value, err := encodeSession(key, r)
	if err != nil {
		return err
	}
	if err := batch.Set(key, value, nil); err != nil {
		return err
	}
	for _, l := range r.links {
		key := referenceKey(l.segment, r.info.ID)
		value, err := encodeReference(key, l)
		if err != nil {
			return err
		}
		if err := batch.Set(key, value, nil); err != nil {
			return err
		}
	}
	return nil
}

// putEvent writes an event with its head and index and returns the state behind
// it. encoded is what appendEvent made of it.
func putEvent(batch *pebble.Batch, own link, at state, f eventlog.FreshEvent, encoded []byte) (state, error) {
	next := at
	next.head = f.Head
	next.bytes += eventlog.Size(f.Event)

	op := batch.SetDeferred(len(eventKey(own.segment, f.Event.Seq)), frameSize+len(encoded)+turnSize(f.Event.Turn))
	copy(op.Key, eventKey(own.segment, f.Event.Seq))
	body := append(op.Value[:frameSize], encoded...)
	appendTurn(body, f.Event.Turn)
	putFrame(op.Key, keyEvent, op.Value)
	next.chain = chainOver(at.chain, op.Value)
	if err := op.Finish(); err != nil {
		return state{}, err
	}

	hash := eventIDHash(f.Event.ID)
	key := headKey(own.segment, f.Event.Seq)
	value, err := encode(key, keyHead, headRecord(at.head, &next, hash, at.head.Seq == own.base))
	if err != nil {
		return state{}, err
	}
	if err := batch.Set(key, value, nil); err != nil {
		return state{}, err
	}
	key = indexKey(own.segment, hash)
	value, err = encode(key, keyIndex, &storagev1.Index{Seq: uint64(f.Event.Seq), Digest: f.Digest[:]})
	if err != nil {
		return state{}, err
	}
	return next, batch.Set(key, value, nil)
}

// chainOver is the chain behind an event that is stored as value.
func chainOver(before [sha256.Size]byte, value []byte) (after [sha256.Size]byte) {
	h := sha256.New()
	h.Write(before[:])
	h.Write(value)
	h.Sum(after[:0])
	return after
}

// lookupIn finds event_ids in the session, admitted events included.
func (s *Store) lookupIn(target *session) func(string) (eventlog.Known, bool, error) {
	return func(eventID string) (eventlog.Known, bool, error) {
		hash := eventIDHash(eventID)
		for _, l := range slices.Backward(target.links) {
			if l.owned() && target.at.head.Seq == l.base {
				continue // nothing was appended yet
			}
			known, found, err := s.lookup(l, hash)
			if err != nil || found {
				return known, found, err
			}
		}
		return eventlog.Known{}, false, nil
	}
}

func (s *Store) lookup(l link, hash []byte) (eventlog.Known, bool, error) {
	key := indexKey(l.segment, hash)
	value, closer, err := s.db.Get(key)
	switch {
	case errors.Is(err, pebble.ErrNotFound):
		return eventlog.Known{}, false, nil
	case err != nil:
		return eventlog.Known{}, false, s.fail(describeKey(key), err)
	}
	var m storagev1.Index
	err = decode(key, keyIndex, value, &m)
	closer.Close()
	if err != nil {
		return eventlog.Known{}, false, err
	}
	known := eventlog.Known{Seq: eventlog.Seq(m.GetSeq())}
	if len(m.GetDigest()) != len(known.Digest) {
		return eventlog.Known{}, false, &eventlog.CorruptError{What: describeKey(key), Reason: "its digest has the wrong size"}
	}
	if known.Seq > l.upTo {
		return eventlog.Known{}, false, nil
	}
	copy(known.Digest[:], m.GetDigest())
	first, err := s.event(l, known.Seq)
	if err != nil {
		return eventlog.Known{}, false, err
	}
	known.Tokens = first.Tokens
	return known, true, nil
}
