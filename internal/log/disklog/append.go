package disklog

import (
	"cmp"
	"context"

	"github.com/cockroachdb/pebble/v2"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/eventcodec"
)

// Append admits a batch.
func (s *Store) Append(ctx context.Context, id string, b eventlog.Batch) (_ eventlog.Commit, err error) {
	defer inSession(id, &err)
	if err := eventlog.ValidateSessionID("session_id", id); err != nil {
		return nil, err
	}
	prepared, err := eventlog.Prepare(b)
	if err != nil {
		return nil, err
	}
	if err := eventlog.ValidateArtifacts(b.Artifacts); err != nil {
		return nil, err
	}
	if err := s.enterToChange(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	encoded := encodeEvents(prepared.Events())
	sl, err := s.acquire(id)
	if err != nil {
		return nil, err
	}
	defer s.release(sl)
	c, err := s.appendTo(ctx, sl, b, prepared, encoded)
	if err != nil {
		// The session that is the reason may not be visible yet: it is visible when its commit is durable.
		return nil, cmp.Or(c.commit.wait(ctx), err)
	}
	return c, nil
}

// appendTo admits a batch to the session of a slot. If the session's content is the reason to refuse it, the result
// holds the session's newest commit: wait for it before the error is returned, so that the client can see the reason.
func (s *Store) appendTo(ctx context.Context, sl *slot, b eventlog.Batch, prepared eventlog.PreparedBatch, encoded []encodedEvent) (c appended, err error) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	target, id := sl.session.Load(), sl.id
	created := target == nil
	switch {
	case b.Of == nil:
	case *b.Of == 0 && !created:
		return appended{commit: target.last}, &eventlog.ExistsError{Kind: "session", Name: id}
	case *b.Of != 0 && (created || target.incarnation() != *b.Of):
		return appended{}, eventlog.NoSession(id)
	}
	if created {
		own := link{segment: s.newSegment(), upTo: unbounded, puts: unbounded}
		target = newSession(newRecord(eventlog.Session{ID: id, CreateTime: b.Time}, []link{own}), state{}, puts{})
	}
	admission, err := prepared.Admit(target.at.head, s.lookupIn(target, encoded))
	if err != nil {
		return appended{commit: target.last}, err
	}
	if len(admission.Fresh) == 0 {
		// The first append of these events may not be durable yet: wait for the session's newest commit.
		return appended{target.last, admission.Receipts}, nil
	}
	if err := s.room.refuse(); err != nil {
		return appended{}, err
	}
	of := target.incarnation()
	if created {
		of = 0
	}
	if !eventlog.AllOf(b.Artifacts, of) {
		return appended{}, eventlog.NoSession(id)
	}
	batch := s.db.NewBatch()
	if created {
		if err := s.putSession(batch, target.record); err != nil {
			return appended{}, err
		}
	}
	at := target.at
	at.head = at.head.Clone() // it is changed in place, and the append may fail
	at.update = b.Time.UTC().Round(0)
	for _, f := range admission.Fresh {
		if at, err = s.putEvent(batch, target.own(), at, f, encoded[f.Index]); err != nil {
			return appended{}, err
		}
		encoded[f.Index].body = nil // the batch has it; a wait for the disk would keep both
	}
	put := target.puts
	var before func(*commit)
	if len(b.Artifacts) > 0 {
		// These appends are rare, so they may wait under the lock for the put before.
		if err := target.settled(ctx); err != nil {
			return appended{}, err
		}
		if put, err = s.stageAll(batch, id, target, b.Artifacts); err != nil {
			return appended{}, err
		}
		before = target.lastPut.Store
	}
	settled := target.expect(admission.Fresh, encoded)
	commit, err := s.submit(batch, func() { settled(); target.publish(at); target.keep(put.bytes) }, before, sl)
	if err != nil {
		settled()
		return appended{}, err
	}
	target.at, target.puts, target.last = at, put, commit
	if target.ids != nil {
		for _, f := range admission.Fresh {
			target.ids.add(encoded[f.Index].idHash)
		}
	}
	target.weigh()
	if created {
		sl.session.Store(target)
	}
	return appended{commit, admission.Receipts}, nil
}

// encodedEvent is the part of storing an event that needs no lock.
type encodedEvent struct {
	body   []byte // all but the head
	idHash idHash
}

func encodeEvents(events []eventlog.Event) []encodedEvent {
	encoded := make([]encodedEvent, len(events))
	for i, e := range events {
		// Most of it is content; 128 bytes hold the rest of a plain message.
		body := make([]byte, 0, eventlog.Size(e)+128)
		encoded[i] = encodedEvent{body: eventcodec.Append(body, e), idHash: eventIDHash(e.ID)}
	}
	return encoded
}

// putSession writes a new session: its record, and a reference to it in each segment that it shows.
func (s *Store) putSession(batch *pebble.Batch, r *record) error {
	key := sessionKey(r.info.ID)
	value, err := encodeSession(key, r)
	if err != nil {
		return err
	}
	if err := s.set(batch, key, r.own().segment, value); err != nil {
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

// putEvent writes an event and its index, and returns the state after it. It changes the open calls of at in place.
func (s *Store) putEvent(batch *pebble.Batch, own link, at state, f eventlog.FreshEvent, e encodedEvent) (state, error) {
	first := at.head.Seq == own.base
	at.head.Apply(f.Event.Seq, f.Change)
	at.bytes += eventlog.Size(f.Event)

	var space [256]byte
	complete := first || at.completeAfter(len(e.body))
	head := appendHead(space[:0], &at, f.Change, complete)
	size := recordSize(e.body, head)
	if at.since += size; complete {
		at.since = 0
	}
	if s.keys == nil {
		op := batch.SetDeferred(eventKeySize, size)
		appendEventKey(op.Key[:0], own.segment, f.Event.Seq)
		at.chain = putRecord(op.Key, op.Value, e.body, head, at.chain)
		if err := op.Finish(); err != nil {
			return state{}, err
		}
	} else {
		key, record := eventKey(own.segment, f.Event.Seq), make([]byte, size)
		at.chain = putRecord(key, record, e.body, head, at.chain)
		if err := s.set(batch, key, own.segment, record); err != nil {
			return state{}, err
		}
	}

	var key [eventKeySize + eventIDHashSize]byte
	index := eventcodec.AppendBytes(eventcodec.AppendInt(space[:frameSize], 1, uint64(f.Event.Seq)), 2, f.Digest[:])
	indexKey := append(appendKindPrefix(key[:0], own.segment, keyIndex), e.idHash[:]...)
	putFrame(indexKey, keyIndex, index)
	return at, s.set(batch, indexKey, own.segment, index)
}
