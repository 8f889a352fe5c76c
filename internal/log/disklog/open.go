package disklog

import (
	"container/list"
	"errors"
	"fmt"
	"os"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// pebbleFormat is raised together with formatVersion.
const pebbleFormat = pebble.FormatValueSeparation

// Open opens the event log in a directory, which is made if need be. It returns
// *LockedError if another process has it, *FormatError if it is none that this
// program can read.
func Open(dir string, opts Options) (*Store, error) {
	opts = opts.withDefaults()
	if err := makeDir(opts.FS, dir); err != nil {
		return nil, fmt.Errorf("make %s: %w", dir, err)
	}
	lock, err := lockDirectory(opts.FS, dir)
	if err != nil {
		return nil, err
	}
	s, err := openLocked(dir, opts)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	s.lock = lock
	return s, nil
}

func openLocked(dir string, opts Options) (*Store, error) {
	if err := checkFormat(opts.FS, dir); err != nil {
		return nil, err
	}
	s := &Store{
		opts:    opts,
		dir:     opts.FS.PathJoin(dir, dataDir),
		disk:    newHaltFS(opts.FS),
		logger:  opts.Logger,
		closing: make(chan struct{}),
		drained: make(chan struct{}),
		written: make(chan *group, maxUnsynced),
		slots:   map[string]*slot{},
		recent:  list.New(),
	}
	db, err := pebble.Open(s.dir, s.pebbleOptions())
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", s.dir, errors.Join(err, s.disk.cause()))
	}
	s.db = db
	s.queue.changed.L = &s.queue.mu
	if err := s.recover(); err != nil {
		return nil, fmt.Errorf("open %s: %w", s.dir, errors.Join(err, db.Close()))
	}
	go s.write()
	go s.settle()
	return s, nil
}

// recover brings the store to where its last process left it.
func (s *Store) recover() error {
	if err := s.failure(); err != nil {
		return err
	}
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{keySegment}, UpperBound: []byte{keySegment + 1}})
	if err != nil {
		return s.fail("segments", err)
	}
	// A session's own segment outlives it only in forks, whose own are greater:
	// no number in use is given away.
	if it.Last() {
		s.lastSegment.Store(uint64(keySegmentID(it.Key())))
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return s.fail("segments", err)
	}
	return s.finishDeletions()
}

func (s *Store) pebbleOptions() *pebble.Options {
	o := &pebble.Options{
		FS:                 s.disk,
		Logger:             pebbleLogger{s.logger, s.disk},
		FormatMajorVersion: pebbleFormat,
		CacheSize:          s.opts.CacheBytes,
		MemTableSize:       s.opts.MemTableBytes,
		// Deletions need old manifests gone; small ones roll over soon.
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

// valueSeparation keeps large values out of compactions. Values that nothing
// refers to come only from deletions, and from compactions that gather values
// which lie too scattered.
func (s *Store) valueSeparation() pebble.ValueSeparationPolicy {
	p := pebble.ValueSeparationPolicy{
		Enabled:               !s.opts.DisableValueSeparation,
		MinimumSize:           s.opts.SeparateBytes,
		MaxBlobReferenceDepth: 100,
		TargetGarbageRatio:    0.2,
	}
	if s.scrubbing.Load() > 0 {
		p.TargetGarbageRatio = 0
	}
	return p
}

// makeDir makes a directory such that it is still there after a crash.
func makeDir(fs vfs.FS, dir string) error {
	var missing []string
	for at := dir; ; at = fs.PathDir(at) {
		_, err := fs.Stat(at)
		if err == nil {
			break
		}
		if !oserror.IsNotExist(err) {
			return err
		}
		missing = append(missing, at)
		if at == fs.PathDir(at) {
			break
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if err := fs.MkdirAll(dir, os.FileMode(0o700)); err != nil {
		return err
	}
	for _, made := range missing {
		if err := syncDir(fs, fs.PathDir(made)); err != nil {
			return err
		}
	}
	return nil
}
