package disklog

import (
	"bytes"
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
)

// rebuild makes a new store from what can be read of the damaged one.
func (r *repairer) rebuild(ctx context.Context) error {
	if err := r.disk.RemoveAll(r.temp); err != nil {
		return err
	}
	if err := durable.MakeDir(r.disk, r.temp); err != nil {
		return err
	}
	opts := r.opts
	opts.private = false
	known, err := r.checkKeys()
	if err != nil {
		return err
	}
	if !r.sealed {
		opts.Encryption = nil // it is encrypted when it is next opened
	} else {
		keys := *opts.Encryption
		keys.Dir = keysAt(r.disk, r.dir, keys.Dir)
		opts.Encryption, opts.takeKeys = &keys, true
	}
	s, err := open(r.temp, opts)
	if err != nil {
		return err
	}
	s.lock = unlocked{}
	if known != "" && known != s.keys.ID() {
		return errors.Join(errOtherKeys(r.dir, opts.Encryption.Dir), s.Close())
	}
	b := &rebuilding{
		repairer: r, store: s, values: salvage.NewValues(r.disk),
		ids: map[string]string{}, erased: map[segmentID]bool{}, deletedIDs: map[string]bool{}, references: map[string][]link{}, segments: map[segmentID]*segmentSeen{},
	}
	err = errors.Join(b.all(ctx), s.Close())
	if err == nil {
		err = b.check(ctx, r.temp, opts)
	}
	return errors.Join(err, r.disk.RemoveAll(r.disk.PathJoin(r.temp, mergeDir)))
}

// checkKeys refuses an encrypted store whose keys are missing. It returns the id of their keyring if that is known.
func (r *repairer) checkKeys() (known string, err error) {
	known, err = readEncryption(r.disk, r.dir)
	switch bad, damaged := errors.AsType[*FormatError](err); {
	case err != nil && (!damaged || bad.Version != 0):
		return "", err
	case damaged || known != "":
		r.sealed = true
	}
	switch {
	case !r.sealed:
		return "", nil
	case r.opts.Encryption == nil:
		return "", errNoKeyGiven(r.dir)
	}
	at := keysAt(r.disk, r.dir, r.opts.Encryption.Dir)
	if _, err := r.disk.Stat(r.disk.PathJoin(at, keyring.MasterFile)); oserror.IsNotExist(err) {
		return "", &FormatError{Dir: r.dir, Reason: fmt.Sprintf("it is encrypted, and %s in %s, without which no key of it can be read, does not exist: put the directory of keys back; no backup of the store helps without it", keyring.MasterFile, at)}
	}
	return known, nil
}

// mergeDir is a temporary database with the newest version of every key that was found.
const mergeDir = "merge"

// rebuilding is a store that is being rebuilt.
type rebuilding struct {
	*repairer
	store   *Store
	values  *salvage.Values
	merge   *pebble.DB
	deleted []salvage.Entry

	// ids are the sessions for which a record or a reference was found, each with what is wrong with its record.
	ids        map[string]string
	erased     map[segmentID]bool // own segments of sessions that were deleted
	deletedIDs map[string]bool    // sessions that were deleted while they were damaged
	references map[string][]link
	segments   map[segmentID]*segmentSeen
	batch      *pebble.Batch
}

// segmentSeen has what was found of a segment, readable or not.
type segmentSeen struct {
	last    eventlog.Seq // of events, and of artifacts
	puts    puts
	records int // artifacts that cannot be read
	fault   string
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
	if err := errors.Join(err, b.merge.Close()); err != nil {
		return err
	}
	return b.mendAll(ctx)
}

// A value in the merge database is the seq of the key's newest version, then one of these kinds, then what the kind
// says.
const (
	mergedDeleted = iota
	mergedValue   // the value
	mergedApart   // the length of the value, which is in a blob file
)

// take puts a version of a key into the merge database if it is the newest version so far.
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

// mendAll cuts every session before its first lost event, and drops content that belongs to no session.
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
	// The damage may hide segments in use: start well after them, so that no number is used twice.
	batch := b.store.db.NewBatch()
	return errors.Join(putPuts(batch, highest+segmentGap, puts{}), batch.Commit(pebble.NoSync))
}

// drop removes content that no session shows, and recounts the artifacts.
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
				at.puts.last, at.puts.frozen = max(at.puts.last, l.puts), max(at.puts.frozen, l.puts)
			}
		}
		if err := errors.Join(b.store.prune(batch, segment, links), putPuts(batch, segment, at.puts)); err != nil {
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

// check opens the rebuilt store as the daemon will, and verifies it.
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
