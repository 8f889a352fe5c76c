package disklog

import (
	"container/list"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog/durable"
)

// pebbleFormat is raised together with formatVersion.
const pebbleFormat = pebble.FormatValueSeparation

// leastMemTable is the smallest memtable, which is needed only on a very small disk.
const leastMemTable = 256 << 10

// stopWrites is how many layers of tables there may be before Pebble stops writes.
const stopWrites = 1000

// Open opens the store in a directory, and makes it if it does not exist. The error is *LockedError if another
// process has the store, *FormatError if this program cannot read it, and *MissingError if it has less than the last
// process wrote.
func Open(dir string, opts Options) (*Store, error) {
	opts = opts.withDefaults()
	if opts.ReadOnly {
		return openLocked(dir, opts, lockToRead)
	}
	if err := durable.MakeDir(opts.FS, dir); errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("%s is a link to nothing", dir)
	} else if err != nil {
		return nil, fmt.Errorf("make %s: %w", dir, err)
	}
	s, err := openLocked(dir, opts, lockOwn)
	if err == nil && opts.Copying != "" {
		if err := s.markEmpty(dir); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	if isNoRoom(err) {
		err = fmt.Errorf("%s: the disk is full, and nothing is left of the reserve: make room on it, then start again (%w)", dir, err)
	}
	return s, err
}

func openLocked(dir string, opts Options, take func(vfs.FS, string) (io.Closer, error)) (*Store, error) {
	lock, err := take(opts.FS, dir)
	if err != nil {
		return nil, err
	}
	s, err := open(dir, opts)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	s.lock = lock
	return s, nil
}

// open opens a directory that is locked.
func open(dir string, opts Options) (_ *Store, err error) {
	// This check comes before any change of the directory, which may belong to another program.
	empty, err := checkFormat(opts.FS, dir)
	if err != nil {
		return nil, err
	}
	if err := refuseCopying(opts.FS, dir, opts.Copying); err != nil {
		return nil, err
	}
	if empty {
		if err := refuseUsedKeys(opts, dir, "what was in it is lost", "restore"); err != nil {
			return nil, err
		}
		if opts.Copying != "" {
			if err := markCopying(opts, dir); err != nil {
				return nil, err
			}
		}
	}
	if opts.ReadOnly {
		opts.FS, opts.private, opts.ReserveBytes = readFS{opts.FS}, false, 0
	}
	if opts.private {
		if err := makePrivate(dir, opts.Logger); err != nil {
			return nil, err
		}
	}
	made := newRoom(opts, dir)
	made.find()
	aside := &asideFS{disk: opts.FS, dir: opts.FS.PathJoin(dir, snapshotDir)}
	if !opts.ReadOnly {
		// An old snapshot may have sessions that were deleted since.
		if err := aside.disk.RemoveAll(aside.dir); err != nil {
			return nil, err
		}
	}
	opts.FS = roomFS{opts.FS, made}
	if opts.ReserveBytes > 0 {
		// The next opening writes the log of a killed process out as up to three memtables, and has half of the
		// reserve for that.
		opts.MemTableBytes = min(opts.MemTableBytes, max(uint64(made.piece), leastMemTable))
	}
	s := &Store{
		opts:      opts,
		dir:       opts.FS.PathJoin(dir, dataDir),
		disk:      newHaltFS(opts.FS),
		room:      made,
		aside:     aside,
		logger:    opts.Logger,
		closing:   make(chan struct{}),
		drained:   make(chan struct{}),
		written:   make(chan *group, maxUnsynced),
		slots:     map[string]*slot{},
		pageTurns: newPageTurns(),
		listed:    map[segmentID]*listedState{},
		recent:    list.New(),
		eraser:    newEraser(),
	}
	s.disk.opening.Store(true)
	defer s.disk.opening.Store(false)
	s.disk.closing, s.disk.damage.logger, s.disk.syncing = s.closing, s.logger, opts.Syncing
	s.room.halted, s.room.closing, s.room.halt = s.disk.halted, s.closing, s.disk.halt
	s.aside.FS = s.disk
	prepare := s.prepare
	if opts.ReadOnly {
		prepare = s.prepareToRead
	}
	if err := prepare(dir, empty); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.disk.inventory.close(false))
		}
	}()
	if err := s.dropRepairs(dir); err != nil {
		return nil, err
	}
	if err := s.openKeys(dir); err != nil {
		return nil, err
	}
	options := s.pebbleOptions()
	options.ReadOnly = opts.ReadOnly
	options.ErrorIfNotExists = s.disk.inventory.exists()
	options.FileCache = newFileCache()
	db, err := pebble.Open(s.dir, options)
	options.FileCache.Unref() // db has a reference of its own
	if err != nil {
		if cause := s.disk.cause(); cause != nil {
			err = cause // the disk was halted: Pebble's own error follows from that
		}
		return nil, s.refused(dir, err)
	}
	s.db = db
	s.queue.changed.L = &s.queue.mu
	if err := s.recover(); err != nil {
		return nil, fmt.Errorf("open %s: %w", s.dir, errors.Join(err, db.Close()))
	}
	s.room.place = placeOf(opts.FS, dir, s.dir, opts.FS.PathJoin(dir, lockFile))
	if opts.ReserveBytes > 0 {
		s.room.look()
		s.room.patient.Store(true)
		s.start("watching the room on the disk", s.room.watch)
	}
	go s.write()
	go s.settle()
	if !opts.ReadOnly {
		s.start("erasing", s.erase)
	}
	return s, nil
}

// prepare checks that the directory is a store that may be opened, or makes a store in an empty directory. It makes
// the inventory before the format file, so a format without an inventory means that the inventory was lost.
func (s *Store) prepare(dir string, empty bool) (err error) {
	var now counted
	if !empty {
		if now, err = s.recall(dir); err != nil {
			return err
		}
	}
	if now.manifest.number > 0 {
		if err := errors.Join(s.checkFiles(dir), s.dropOptions()); err != nil {
			return err
		}
	}
	if s.disk.inventory, err = openInventory(s.opts.FS, dir, now); err != nil {
		return fmt.Errorf("write %s: %w", inventoryFile, err)
	}
	if empty {
		if err := durable.Replace(s.opts.FS, dir, formatFile, formatText()); err != nil {
			return errors.Join(err, s.disk.inventory.close(false))
		}
	}
	return nil
}

// dropRepairs removes the directory of a repair that was interrupted before it changed anything. That directory does
// not get what is appended from now on, and must not keep what is deleted from now on. So it is removed, its format
// file first, and durably, before any other change: otherwise a part of it that a power failure left could be
// mistaken for a part of a repair.
func (s *Store) dropRepairs(dir string) error {
	disk := s.opts.FS
	repaired := disk.PathJoin(dir, repairedDir)
	_, err := disk.Stat(repaired)
	switch {
	case s.opts.ReadOnly:
		return nil
	case oserror.IsNotExist(err):
		return disk.RemoveAll(disk.PathJoin(dir, repairTemp))
	case err != nil:
		return err
	}
	if err := disk.Remove(repairedFormat(disk, dir)); err != nil && !oserror.IsNotExist(err) {
		return err
	}
	if err := durable.SyncDir(disk, repaired); err != nil {
		return err
	}
	if err := errors.Join(disk.RemoveAll(disk.PathJoin(dir, repairTemp)), disk.RemoveAll(repaired)); err != nil {
		return err
	}
	return durable.SyncDir(disk, dir)
}

// dropOptions removes the file in which Pebble records its options if it cannot be read. Every opening writes it
// again. Its purpose is to detect another order of keys, and this program has only one.
func (s *Store) dropOptions() error {
	names, err := s.opts.FS.List(s.dir)
	if err != nil {
		return err
	}
	options := s.pebbleOptions()
	options.EnsureDefaults()
	for _, name := range names {
		if !strings.HasPrefix(s.opts.FS.PathBase(name), optionsPrefix) {
			continue
		}
		path := s.opts.FS.PathJoin(s.dir, name)
		text, err := durable.Read(s.opts.FS, path, maxOptions)
		if err != nil {
			return err
		}
		if err := options.CheckCompatibility(s.dir, text); err != nil {
			s.logger.Warn("a damaged file of the event log that nothing depends on is rewritten", "file", name, "error", err)
			if err := s.opts.FS.Remove(path); err != nil {
				return err
			}
		}
	}
	return nil
}

const (
	optionsPrefix = "OPTIONS-"
	// maxOptions is more than the size of Pebble's options.
	maxOptions = 1 << 20
)

// recover restores the store's counters and pending deletions from the database.
func (s *Store) recover() error {
	if err := s.failure(); err != nil {
		return err
	}
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{keySegment}, UpperBound: []byte{keySegment + 1}})
	if err != nil {
		return s.fail("segments", err)
	}
	// After a session was deleted, only forks refer to its segment, and their own segments have greater numbers. So
	// the greatest number in a record is enough to give none away twice.
	if it.Last() {
		s.lastSegment.Store(uint64(keySegmentID(it.Key())))
	}
	err = it.Error()
	if closeErr := it.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		err = s.fail("segments", err)
		if _, corrupt := errors.AsType[*eventlog.CorruptError](err); !corrupt {
			return err
		}
		last, err := s.highestKnownSegment()
		if err != nil {
			return err
		}
		s.lastSegment.Store(uint64(last))
	}
	if s.opts.ReadOnly {
		return nil
	}
	return s.findDeletions()
}

func (s *Store) pebbleOptions() *pebble.Options {
	o := &pebble.Options{
		FS:                 s.aside,
		Logger:             pebbleLogger{s.logger, s.disk},
		FormatMajorVersion: pebbleFormat,
		CacheSize:          s.opts.CacheBytes,
		MemTableSize:       s.opts.MemTableBytes,
		// The layers grow while a damaged table cannot be compacted: writes must go on nonetheless.
		L0StopWritesThreshold: stopWrites,
		// Erasing deletions needs new manifests, so let small ones roll over soon.
		MaxManifestFileSize:        1,
		CompactionConcurrencyRange: func() (lower, upper int) { return 1, 2 },
		EventListener:              s.listener(),
	}
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	o.Experimental.ValueSeparationPolicy = s.valueSeparation
	return o
}

// valueSeparation keeps large values out of compactions. Values without a reference come only from deletions, and
// from compactions that rewrite values which are scattered over many files.
func (s *Store) valueSeparation() pebble.ValueSeparationPolicy {
	p := pebble.ValueSeparationPolicy{
		Enabled:               !s.opts.DisableValueSeparation,
		MinimumSize:           s.opts.SeparateBytes,
		MaxBlobReferenceDepth: 100,
		TargetGarbageRatio:    0.2,
	}
	switch {
	case s.disk.damage.urgent.Load() > 0:
		p.TargetGarbageRatio = 0
	case s.disk.damage.any(blobSuffix):
		// With a damaged blob file Pebble would try to rewrite it, and fail, forever.
		p.TargetGarbageRatio = 1
	}
	return p
}
