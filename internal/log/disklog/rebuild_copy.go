package disklog

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog/salvage"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

// copyAll copies the newest version of each key into the new store, if it is whole.
func (b *rebuilding) copyAll(ctx context.Context) error {
	slices.SortFunc(b.deleted, func(x, y salvage.Entry) int { return bytes.Compare(x.Key, y.Key) })
	it, err := b.merge.NewIter(nil)
	if err != nil {
		return err
	}
	b.batch = b.store.db.NewBatch()
	next, over := 0, []salvage.Entry{}
	for ok := it.First(); ok && err == nil && ctx.Err() == nil; ok = it.Next() {
		key := it.Key()
		value, valueErr := it.ValueAndErr()
		if valueErr != nil {
			break // the iterator has the error
		}
		for ; next < len(b.deleted) && bytes.Compare(b.deleted[next].Key, key) <= 0; next++ {
			over = append(over, b.deleted[next])
		}
		over = slices.DeleteFunc(over, func(d salvage.Entry) bool { return bytes.Compare(d.End, key) <= 0 })
		seq := binary.BigEndian.Uint64(value)
		if value[8] == mergedDeleted || slices.ContainsFunc(over, func(d salvage.Entry) bool { return d.Seq > seq }) {
			continue
		}
		err = b.copyKey(key, value[8], value[9:])
	}
	return errors.Join(err, ctx.Err(), it.Close(), b.commit(0))
}

// commit writes the batch if it is larger than this.
func (b *rebuilding) commit(size int) error {
	if b.batch.Len() <= size {
		return nil
	}
	err := b.batch.Commit(pebble.NoSync)
	b.batch = b.store.db.NewBatch()
	return err
}

// copyKey copies a key if it is whole, or else records what is known of it. Keys that can be derived from others are
// rebuilt and not copied.
func (b *rebuilding) copyKey(key []byte, how byte, value []byte) error {
	letter := key[0]
	segment := keySegmentID(key)
	if letter == keySegment && len(key) > 9 {
		letter = key[9]
	}
	if how == mergedApart {
		length, _ := binary.Uvarint(value)
		found, err := b.values.Find(int(length), func(v []byte) bool { _, err := b.plain(key, letter, v); return err == nil })
		if err != nil {
			return err
		}
		value = found
	}
	if len(value) == 0 && how == mergedValue {
		if letter == keySession && len(key) > 1 {
			b.deletedIDs[string(key[1:])] = true
		}
		return nil // an empty value that replaced a deleted session's
	}
	plain, fault := b.plain(key, letter, value)
	if fault != nil && b.store.failure() != nil {
		return fault
	}
	switch {
	case letter == keyDeletion:
		return b.copyDeletion(key, value, plain, fault)
	case letter == keySession && len(key) > 1:
		return b.copySession(key, value, plain, fault)
	case key[0] != keySegment || len(key) < 10:
		return nil
	}
	at := b.seen(segment)
	switch letter {
	case keyEvent:
		at.last = max(at.last, keySeq(key))
		return b.copyEvent(at, key, value, plain, fault)
	case keyArtifact:
		return b.copyArtifact(at, key, value, fault)
	case keyIndex:
		var m storagev1.Index
		if fault == nil && decode(key, keyIndex, plain, &m) == nil {
			at.last = max(at.last, eventlog.Seq(m.GetSeq()))
		}
	case keyPuts:
		var m storagev1.Puts
		if fault == nil && decode(key, keyPuts, plain, &m) == nil {
			at.puts.last, at.puts.frozen = max(at.puts.last, m.GetLast()), max(at.puts.frozen, m.GetFrozen())
			at.puts.bytes = max(at.puts.bytes, m.GetBytes())
		}
	case keyReference:
		id := string(key[10:])
		if l, err := decodeReference(key, plain); fault == nil && err == nil {
			b.references[id] = append(b.references[id], l)
		}
	}
	return nil
}

// plain returns the framed value, if it is whole.
func (b *rebuilding) plain(key []byte, letter byte, value []byte) ([]byte, error) {
	if len(value) == 0 {
		reason := "it is in none of the blocks that can be read"
		if segment := keySegmentID(key); b.store.keys != nil && segment != 0 {
			if err := b.store.keys.Check(uint64(segment)); err != nil {
				reason = err.Error()
			}
		}
		return nil, &eventlog.CorruptError{What: describeKey(key), Reason: reason}
	}
	plain, err := b.store.unsealed(key, value)
	if err == nil {
		_, err = unframe(key, letter, plain)
	}
	return plain, err
}

func (b *rebuilding) copySession(key, value, plain []byte, fault error) error {
	id := string(key[1:])
	if fault == nil {
		_, fault = decodeSession(key, plain)
	}
	if fault != nil {
		b.ids[id] = fault.Error()
		return nil //nolint:nilerr // the report has it
	}
	b.ids[id] = ""
	return errors.Join(b.batch.Set(key, value, nil), b.commit(copyBatch))
}

// copyBatch is how many bytes are written at a time.
const copyBatch = 1 << 20

func (b *rebuilding) copyEvent(at *segmentSeen, key, value, plain []byte, fault error) error {
	var e eventlog.Event
	if fault == nil {
		e, fault = decodeEvent(key, plain)
	}
	if fault != nil {
		at.fault = cmp.Or(at.fault, fault.Error())
		return nil
	}
	segment, digest := keySegmentID(key), eventlog.Digest(e)
	index := indexKey(segment, eventIDHash(e.ID))
	record, err := encode(index, keyIndex, &storagev1.Index{Seq: uint64(e.Seq), Digest: digest[:]})
	if err != nil {
		return err
	}
	return errors.Join(b.batch.Set(key, value, nil), b.store.set(b.batch, index, segment, record), b.commit(copyBatch))
}

func (b *rebuilding) copyArtifact(at *segmentSeen, key, value []byte, fault error) error {
	name, ok := parseArtifactKey(key)
	if !ok {
		return nil
	}
	at.puts.last = max(at.puts.last, name.put)
	if name.seq < noEvent {
		at.last = max(at.last, name.seq)
	}
	if fault != nil {
		at.records++
		return nil //nolint:nilerr // the report has it
	}
	return errors.Join(b.batch.Set(key, value, nil), b.commit(copyBatch))
}

// noEvent exceeds every event's seq. Artifacts that belong to no event are numbered from there.
const noEvent = 1 << 62

// copyDeletion keeps a deletion that can be read. The next opening completes it, because keys may remain to be
// destroyed.
func (b *rebuilding) copyDeletion(key, value, plain []byte, fault error) error {
	b.erased[deletionSegment(key)] = true
	if readable := fault == nil && isDeletion(key, plain); readable {
		return b.batch.Set(key, value, nil)
	}
	return nil
}

// isDeletion reports whether a value can be read as that of a deletion.
func isDeletion(key, plain []byte) bool {
	var m storagev1.Deletion
	return decode(key, keyDeletion, plain, &m) == nil
}
