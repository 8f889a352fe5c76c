package disklog

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog/durable"
	"github.com/contextd/contextd/internal/log/disklog/keyring"
	"github.com/contextd/contextd/internal/log/disklog/salvage"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

// rebuild makes a store of what can be read of the damaged one.
func (r *repairer) rebuild(ctx context.Context) error {
	temp := r.path(repairTemp)
	if err := r.disk.RemoveAll(temp); err != nil {
		return err
	}
	if err := durable.MakeDir(r.disk, temp); err != nil {
		return err
	}
	opts := r.opts
	opts.private = false
	if opts.Encryption != nil {
		keys := *opts.Encryption
		keys.Dir = keysAt(r.disk, r.dir, keys.Dir)
		opts.Encryption = &keys
	}
	if err := r.checkKeys(); err != nil {
		return err
	}
	s, err := open(temp, opts)
	if err != nil {
		return err
	}
	s.lock = unlocked{}
	b := &rebuilding{
		repairer: r, store: s, values: salvage.NewValues(r.disk),
		ids: map[string]string{}, erased: map[segmentID]bool{}, deletedIDs: map[string]bool{}, references: map[string][]link{}, segments: map[segmentID]*segmentSeen{},
	}
	err = errors.Join(b.all(ctx), s.Close())
	if err == nil {
		err = b.check(ctx, temp, opts)
	}
	return errors.Join(err, r.disk.RemoveAll(r.disk.PathJoin(temp, mergeDir)))
}

// checkKeys refuses a store that is encrypted and whose keys are not there.
func (r *repairer) checkKeys() error {
	_, err := r.disk.Stat(r.path(encryptionFile))
	switch {
	case r.opts.Encryption == nil && err == nil:
		return &FormatError{Dir: r.dir, Reason: "it is encrypted, and no key was given"}
	case r.opts.Encryption == nil:
		return nil
	}
	at := keysAt(r.disk, r.dir, r.opts.Encryption.Dir)
	if _, err := r.disk.Stat(r.disk.PathJoin(at, keyring.MasterFile)); oserror.IsNotExist(err) {
		return &FormatError{Dir: r.dir, Reason: fmt.Sprintf("it is encrypted, and %s in %s, without which no key of it can be read, does not exist: put the directory of keys back; no backup of the store helps without it", keyring.MasterFile, at)}
	}
	return nil
}

// mergeDir is the database in which the newest versions of all keys are found.
const mergeDir = "merge"

// rebuilding is a store that is being rebuilt.
type rebuilding struct {
	*repairer
	store   *Store
	values  *salvage.Values
	merge   *pebble.DB
	deleted []salvage.Entry

	// ids are the sessions whose records, or a part of them, were found; with what is wrong with
	// the record.
	ids        map[string]string
	erased     map[segmentID]bool // own segments of sessions that were deleted
	deletedIDs map[string]bool    // sessions that were deleted when they could not be read
	references map[string][]link
	segments   map[segmentID]*segmentSeen
	batch      *pebble.Batch
}

// segmentSeen is what was seen of a segment, whether or not it could be read.
type segmentSeen struct {
	last         eventlog.Seq // of events, and of artifacts
	puts, frozen uint64
	records      int // artifacts that cannot be read
	fault        string
}

func (b *rebuilding) seen(id segmentID) *segmentSeen {
	at := b.segments[id]
	if at == nil {
		at = &segmentSeen{}
		b.segments[id] = at
	}
	return at
}

func (b *rebuilding) all(ctx context.Context) (err error) {
	if b.merge, err = pebble.Open(b.store.opts.FS.PathJoin(b.store.opts.FS.PathDir(b.store.dir), mergeDir), &pebble.Options{
		FS: b.disk, DisableWAL: true, MemTableSize: b.opts.MemTableBytes, Logger: pebbleLogger{b.opts.Logger, b.store.disk},
	}); err != nil {
		return err
	}
	err = b.eachFile(b.take, b.values)
	if err == nil {
		err = b.copyAll(ctx)
	}
	if err = errors.Join(err, b.merge.Close()); err != nil {
		return err
	}
	return b.mendAll(ctx)
}

// What a key has in the database of newest versions: the seq, and then one of these.
const (
	mergedDeleted = iota
	mergedValue   // the value
	mergedApart   // the length of the value
)

// take notes a version of a key if it is the newest so far.
func (b *rebuilding) take(e salvage.Entry) error {
	if e.End != nil {
		b.deleted = append(b.deleted, salvage.Entry{Key: bytes.Clone(e.Key), End: bytes.Clone(e.End), Seq: e.Seq})
		return nil
	}
	known, closer, err := b.merge.Get(e.Key)
	switch {
	case err == nil:
		newest := binary.BigEndian.Uint64(known)
		if err := closer.Close(); err != nil || newest > e.Seq {
			return err
		}
	case !errors.Is(err, pebble.ErrNotFound):
		return err
	}
	v := binary.BigEndian.AppendUint64(make([]byte, 0, 9+len(e.Value)), e.Seq)
	switch {
	case e.Deleted:
		v = append(v, mergedDeleted)
	case e.Apart > 0:
		v = binary.AppendUvarint(append(v, mergedApart), uint64(e.Apart))
	default:
		v = append(append(v, mergedValue), e.Value...)
	}
	return b.merge.Set(e.Key, v, pebble.NoSync)
}

// copyAll copies what is whole of the newest versions.
func (b *rebuilding) copyAll(ctx context.Context) error {
	slices.SortFunc(b.deleted, func(x, y salvage.Entry) int { return bytes.Compare(x.Key, y.Key) })
	it, err := b.merge.NewIter(nil)
	if err != nil {
		return err
	}
	b.batch = b.store.db.NewBatch()
	next, over := 0, []salvage.Entry{}
	for ok := it.First(); ok && err == nil && ctx.Err() == nil; ok = it.Next() {
		key, value := it.Key(), it.Value()
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

// copyKey copies a key that is whole, or notes what is known of it. What can be derived from the rest is
// not copied, but made again.
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
		return nil // of a deletion
	}
	plain, fault := b.plain(key, letter, value)
	if fault != nil && b.store.failure() != nil {
		return fault
	}
	switch {
	case letter == keyDeletion:
		b.erased[deletionSegment(key)] = true
		return nil
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
			at.puts, at.frozen = max(at.puts, m.GetLast()), max(at.frozen, m.GetFrozen())
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
		if segment := keySegmentID(key); b.store.keys != nil && segment != 0 && !b.store.keys.Has(uint64(segment)) {
			reason = keyring.ErrNoKey.Error()
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
		return nil
	}
	b.ids[id] = ""
	return errors.Join(b.batch.Set(key, value, nil), b.commit(copyBatch))
}

// copyBatch is how much is written at a time.
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
	at.puts = max(at.puts, name.put)
	if name.seq < noEvent {
		at.last = max(at.last, name.seq)
	}
	if fault != nil {
		at.records++
		return nil
	}
	return errors.Join(b.batch.Set(key, value, nil), b.commit(copyBatch))
}

// noEvent is more than the seq of any event: artifacts that belong to none are numbered from there.
const noEvent = 1 << 62

// mendAll makes every session whole as far as it goes, and drops what belongs to none.
func (b *rebuilding) mendAll(ctx context.Context) error {
	for id := range b.references {
		if _, found := b.ids[id]; !found && !b.deletedIDs[id] {
			b.ids[id] = "its record is lost"
		}
	}
	shares := map[segmentID][]link{}
	highest := segmentID(0)
	for id := range b.segments {
		highest = max(highest, id)
	}
	for _, id := range slices.Sorted(maps.Keys(b.ids)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		links, err := b.mend(ctx, id)
		if err != nil {
			return err
		}
		for _, l := range links {
			shares[l.segment] = append(shares[l.segment], l)
			highest = max(highest, l.segment)
		}
	}
	if err := b.drop(shares); err != nil {
		return err
	}
	// No number is given away again that the damage may hide.
	batch := b.store.db.NewBatch()
	return errors.Join(putPuts(batch, highest+segmentGap, 0, 0), batch.Commit(pebble.NoSync))
}

// drop removes what no session shows, and makes the counters of artifacts again.
func (b *rebuilding) drop(shares map[segmentID][]link) error {
	for segment := range shares {
		b.seen(segment)
	}
	batch := b.store.db.NewBatch()
	for segment, at := range b.segments {
		links := shares[segment]
		if len(links) == 0 {
			strays, err := b.eventsOf(segment)
			if err != nil {
				return err
			}
			if !b.erased[segment] {
				b.out.Strays += strays
			}
			lower, upper := segmentSpan(segment)
			if err := batch.DeleteRange(lower, upper, nil); err != nil {
				return err
			}
			continue
		}
		for _, l := range links {
			if !l.owned() {
				at.puts, at.frozen = max(at.puts, l.puts), max(at.frozen, l.puts)
			}
		}
		if err := errors.Join(b.store.prune(batch, segment, links), putPuts(batch, segment, at.puts, at.frozen)); err != nil {
			return err
		}
	}
	return batch.Commit(pebble.NoSync)
}

func (b *rebuilding) eventsOf(segment segmentID) (n int, err error) {
	prefix := kindPrefix(segment, keyEvent)
	err = b.store.scan(prefix, prefixEnd(prefix), func(*pebble.Iterator) error { n++; return nil })
	return n, err
}

// check reads the rebuilt store as the daemon will.
func (b *rebuilding) check(ctx context.Context, dir string, opts Options) error {
	opts.ReadOnly = true
	s, err := open(dir, opts)
	if err != nil {
		return err
	}
	s.lock = unlocked{}
	ids, err := s.SessionIDs(ctx)
	for _, id := range ids {
		err = errors.Join(err, s.Verify(ctx, id))
	}
	return errors.Join(err, s.Close())
}
