package disklog

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog/durable"
)

// scrubPoll is how often a scrub looks whether Pebble has caught up.
const scrubPoll = 2 * time.Millisecond

// scrub makes sure that no file has content that deletions removed from their segments, and then removes the
// deletions' records.
func (s *Store) scrub(deletions map[segmentID][]segmentID) error {
	spans := [][2][]byte{{{keySession}, {keySession + 1}}}
	for _, own := range slices.Sorted(maps.Keys(deletions)) {
		if err := s.destroyKeys(deletions[own]); err != nil {
			return err
		}
		for _, segment := range deletions[own] {
			lower, upper := segmentSpan(segment)
			spans = append(spans, [2][]byte{lower, upper})
		}
	}
	s.disk.damage.urgent.Add(1)
	defer s.disk.damage.urgent.Add(-1)

	// From here on new log files do not reuse old ones, so they have no old content. The older files are removed
	// below.
	s.disk.noRecycling(1)
	defer s.disk.noRecycling(-1)
	lastLog, err := s.newestFile(".log")
	if err != nil {
		return err
	}
	if err := s.rewrite(spans); err != nil {
		return err
	}
	// A manifest that was begun before this may name keys of tables that are gone now.
	manifest := s.manifest.Load()
	for failures := s.disk.damage.failures.Load(); !s.scrubbed(manifest); {
		if s.disk.damage.failures.Load() != failures {
			return errBesideDamage
		}
		// Flushes roll the manifest and make Pebble look for files to rewrite.
		if err := s.nudge(); err != nil {
			return err
		}
	}
	if err := s.removeFiles(".log", lastLog+1); err != nil {
		return err
	}
	if err := s.removeFiles("MANIFEST-", s.manifest.Load()); err != nil {
		return err
	}
	// A power failure must not bring back what was removed: with the record gone, nobody would look for it. The
	// directory above had snapshots.
	for _, dir := range []string{s.dir, s.disk.PathDir(s.dir)} {
		if err := durable.SyncDir(s.disk, dir); err != nil {
			return s.fail("the directory", err)
		}
	}
	batch := s.db.NewBatch()
	for own := range deletions {
		if err := batch.Delete(deletionKey(own), nil); err != nil {
			return err
		}
	}
	if err := batch.Commit(pebble.Sync); err != nil {
		s.disk.halt(err)
	}
	return s.failure()
}

// scrubbed reports whether no blob file has values without a reference, and the manifest is newer than the given one.
func (s *Store) scrubbed(manifest uint64) bool {
	m := s.db.Metrics()
	return s.manifest.Load() > manifest &&
		m.BlobFiles.ValueSize == m.BlobFiles.ReferencedValueSize &&
		m.Table.ObsoleteCount == 0 && m.Table.ZombieCount == 0 &&
		m.BlobFiles.ObsoleteCount == 0 && m.BlobFiles.ZombieCount == 0
}

// rewrite makes Pebble write every table with keys in a span again, which drops deleted values and the tombstones,
// which have the keys.
func (s *Store) rewrite(spans [][2][]byte) error {
	if err := s.compactAll(spans); err != nil {
		return err
	}
	// Pebble moves a table unchanged if no other overlaps it. So write keys around the span, which nobody reads: they
	// overlap every table in it.
	set, unset := s.db.NewBatch(), s.db.NewBatch()
	for _, span := range spans {
		for _, key := range span {
			if err := errors.Join(set.Set(key, nil, nil), unset.Delete(key, nil)); err != nil {
				return err
			}
		}
	}
	if err := set.Commit(pebble.NoSync); err != nil {
		s.disk.halt(err)
		return s.failure()
	}
	if err := s.compactAll(spans); err != nil {
		return err
	}
	if err := unset.Commit(pebble.NoSync); err != nil {
		s.disk.halt(err)
		return s.failure()
	}
	return s.flush()
}

// compactAll flushes the memtable and compacts the spans.
func (s *Store) compactAll(spans [][2][]byte) error {
	if err := s.flush(); err != nil {
		return err
	}
	for _, span := range spans {
		if err := s.compact(span[0], span[1]); err != nil {
			return err
		}
	}
	return nil
}

// compact compacts the keys in lower..upper.
func (s *Store) compact(lower, upper []byte) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	compacted := make(chan error, 1)
	go func() { compacted <- s.db.Compact(ctx, lower, upper, false) }()
	stop := func() {
		cancel()
		if err := <-compacted; err != nil {
			s.logger.Debug("a deleted span was not compacted", "error", err)
		}
	}
	// Pebble delays a compaction next to damage for minutes, again and again.
	failures := s.disk.damage.failures.Load()
	given := time.NewTimer(damagedPatience) //nolint:forbidigo // bounds a wait; no data depends on it
	defer given.Stop()
	poll := time.NewTicker(scrubPoll) //nolint:forbidigo // waits for Pebble's goroutines; no data depends on it
	defer poll.Stop()
	for patient := true; ; {
		select {
		case err := <-compacted:
			if err != nil {
				return s.fail("a deleted span", err)
			}
			return s.failure()
		case <-given.C:
			patient = false
		case <-poll.C:
		case <-s.disk.halted:
			stop()
			return s.failure()
		case <-s.closing:
			stop()
			return eventlog.ErrClosed
		}
		if now := s.disk.damage.failures.Load(); now != failures || now > 0 && !patient {
			stop()
			return errBesideDamage
		}
	}
}

// damagedPatience is how long a compaction may take after damage has made one fail.
const damagedPatience = 10 * time.Second

var errBesideDamage = &eventlog.CorruptError{What: "what is next to a deleted session", Reason: "a file is damaged and cannot be rewritten"}

func (s *Store) nudge() error {
	if err := s.db.Set([]byte{keyNudge}, nil, pebble.NoSync); err != nil {
		s.disk.halt(err)
	}
	if err := s.flush(); err != nil {
		return err
	}
	pause := time.NewTimer(scrubPoll) //nolint:forbidigo // waits for Pebble's goroutines; no data depends on it
	defer pause.Stop()
	select {
	case <-pause.C:
		return nil
	case <-s.disk.halted:
		return s.failure()
	case <-s.closing:
		return eventlog.ErrClosed
	}
}

// flush writes the memtable to a table.
func (s *Store) flush() error {
	flushed, err := s.db.AsyncFlush()
	if err != nil {
		return s.fail("the memtable", err)
	}
	select {
	case <-flushed:
	case <-s.disk.halted:
	}
	return s.failure()
}

// newestFile returns the greatest number of the files of a kind.
func (s *Store) newestFile(kind string) (newest uint64, err error) {
	err = s.eachFile(kind, func(_ string, number uint64) { newest = max(newest, number) })
	return newest, err
}

// removeFiles removes the files of a kind with a number less than before.
func (s *Store) removeFiles(kind string, before uint64) error {
	return s.eachFile(kind, func(path string, number uint64) {
		if number >= before {
			return
		}
		// Pebble may have removed it already.
		if err := s.disk.Remove(path); err != nil && !oserror.IsNotExist(err) {
			s.disk.halt(err)
		}
	})
}

// eachFile calls f for the files whose names are a number with the kind before or after it.
func (s *Store) eachFile(kind string, f func(path string, number uint64)) error {
	names, err := s.disk.List(s.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		digits, found := strings.CutPrefix(name, kind)
		if !found {
			digits, found = strings.CutSuffix(name, kind)
		}
		if number, err := strconv.ParseUint(digits, 10, 64); found && err == nil {
			f(s.disk.PathJoin(s.dir, name), number)
		}
	}
	return s.failure()
}
