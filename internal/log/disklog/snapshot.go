package disklog

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	eventlog "github.com/contextd/contextd/internal/log"
)

// snapshotDir is the directory with the files of an open snapshot, next to the database.
const snapshotDir = "snapshot"

// ErrSnapshotEnded says that a session was deleted while a snapshot was read. The snapshot ends, because it would
// preserve the session's bytes.
var ErrSnapshotEnded = errors.New("a session was deleted meanwhile, and what is copied must not hold it")

// ErrSnapshotOpen says that there is a snapshot already.
var ErrSnapshotOpen = errors.New("another backup is running")

// Snapshot is the store as it was at one moment. The caller must close it.
type Snapshot struct {
	store *Store
	dir   string // of its own files; empty if it has none
	// Files are all files that an opening needs. The format file comes last, because without it a directory is not a
	// store.
	Files []SnapshotFile

	once  sync.Once
	ended chan struct{}
}

// SnapshotFile is a file of a snapshot.
type SnapshotFile struct {
	Name     string // relative to the data directory, with slashes
	Size     int64
	Modified time.Time
	// Immutable says that the store never makes another file of that name, size and time.
	Immutable bool
	path      string
}

// Snapshot makes a snapshot of the durable state. Files that never change are linked, not copied. Appends go on, but
// a deletion ends the snapshot. There is one at a time: another is refused with a passing *UnavailableError.
func (s *Store) Snapshot(ctx context.Context) (_ *Snapshot, err error) {
	if s.opts.ReadOnly {
		return s.snapshotAsItIs(ctx)
	}
	if err := s.enterToChange(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	if err := s.room.refuseCopy(); err != nil {
		return nil, err
	}
	// A snapshot must not have deleted sessions, so wait until they are erased. Most of the wait is here, before the
	// lock that makes new deletions wait.
	if err := s.untilErased(ctx); err != nil {
		return nil, err
	}
	s.erasing.Lock()
	defer s.erasing.Unlock()
	// Deletions make room on a full disk, and wait for this snapshot. So it may use the room that is reserved for
	// them.
	s.room.deletions.Add(1)
	defer s.room.deletions.Add(-1)
	if err := s.untilErased(ctx); err != nil {
		return nil, err
	}
	if s.snapshot != nil {
		return nil, &eventlog.UnavailableError{Cause: ErrSnapshotOpen, Passing: true}
	}
	disk := s.aside.disk
	if err := disk.RemoveAll(s.aside.dir); err != nil {
		return nil, err
	}
	made := &Snapshot{store: s, dir: s.aside.dir, ended: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, disk.RemoveAll(s.aside.dir))
		}
	}()
	if err := disk.MkdirAll(s.aside.dir, 0o700); err != nil {
		return nil, err
	}
	db := disk.PathJoin(s.aside.dir, dataDir)
	if err := s.db.Checkpoint(db, pebble.WithFlushedWAL()); err != nil {
		if failure := s.failure(); failure != nil {
			return nil, failure
		}
		if isNoRoom(err) {
			s.logger.Warn("there is no room on the disk for what a backup copies there", "error", err)
			err = &eventlog.FullError{}
		}
		return nil, err
	}
	if err := made.list(disk, db, func(name string) bool { return name != lockFile }); err != nil {
		return nil, err
	}
	s.snapshot = made
	return made, nil
}

// snapshotAsItIs returns the snapshot of a store that is opened only to be read: the files that it was opened from,
// which nobody changes, without those that are no longer in use.
func (s *Store) snapshotAsItIs(ctx context.Context) (*Snapshot, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	if err := s.scan([]byte{keyDeletion}, []byte{keyDeletion + 1}, func(*pebble.Iterator) error {
		return &eventlog.ReadOnlyError{Needed: "sessions that were deleted must be erased before it is copied: start a daemon on it once, where it can be written to"}
	}); err != nil {
		return nil, err
	}
	inForce, unflushed, err := s.filesInForce(nil)
	if err != nil {
		return nil, err
	}
	l := look{disk: s.opts.FS, dir: s.dir}
	manifest, _, err := l.markers()
	if err != nil {
		return nil, err
	}
	made := &Snapshot{store: s, ended: make(chan struct{})}
	err = made.list(s.opts.FS, s.dir, func(name string) bool {
		_, named := inForce[name]
		return named || unflushed[name] || name == manifestName(manifest) || strings.HasPrefix(name, markerPrefix)
	})
	return made, err
}

// list adds the files of a database for which taken is true, and the store's own files beside the database.
func (n *Snapshot) list(disk vfs.FS, db string, taken func(name string) bool) error {
	names, err := disk.List(db)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name = disk.PathBase(name); !taken(name) {
			continue
		}
		if err := n.add(disk, disk.PathJoin(db, name), dataDir+"/"+name); err != nil {
			return err
		}
	}
	top := disk.PathDir(n.store.dir)
	for _, name := range []string{encryptionFile, formatFile} {
		if err := n.add(disk, disk.PathJoin(top, name), name); err != nil && !oserror.IsNotExist(err) {
			return err
		}
	}
	return nil
}

func (n *Snapshot) add(disk vfs.FS, path, name string) error {
	info, err := disk.Stat(path)
	if err != nil {
		return err
	}
	n.Files = append(n.Files, SnapshotFile{
		Name: name, Size: info.Size(), Modified: info.ModTime(), path: path,
		Immutable: strings.HasSuffix(name, tableSuffix) || strings.HasSuffix(name, blobSuffix),
	})
	return nil
}

// Open opens a file for reading. Reads fail with ErrSnapshotEnded once the snapshot has ended.
func (n *Snapshot) Open(f SnapshotFile) (io.ReadCloser, error) {
	file, err := n.store.aside.disk.Open(f.path)
	if err != nil {
		if n.over() {
			err = ErrSnapshotEnded
		}
		return nil, err
	}
	return &snapshotReader{file, n}, nil
}

func (n *Snapshot) over() bool {
	select {
	case <-n.ended:
		return true
	default:
		return false
	}
}

// Close removes the snapshot's files.
func (n *Snapshot) Close() error {
	n.store.erasing.Lock()
	defer n.store.erasing.Unlock()
	return n.end()
}

// end removes the files. Store.erasing is held.
func (n *Snapshot) end() (err error) {
	n.once.Do(func() {
		close(n.ended)
		if n.dir != "" {
			err = n.store.aside.disk.RemoveAll(n.dir)
		}
		n.store.snapshot = nil
	})
	return err
}

type snapshotReader struct {
	vfs.File
	of *Snapshot
}

func (r *snapshotReader) Read(p []byte) (int, error) {
	if r.of.over() {
		return 0, ErrSnapshotEnded
	}
	return r.File.Read(p)
}

// untilErased waits until the sessions deleted so far are erased, except for those that cannot be because of damage.
func (s *Store) untilErased(ctx context.Context) error {
	deletions, _ := s.eraser.next()
	for own := range deletions {
		err := s.WaitErased(ctx, eventlog.Incarnation(own))
		if _, corrupt := errors.AsType[*eventlog.CorruptError](err); err != nil && !corrupt {
			return err
		}
	}
	return nil
}

// beginErasing locks erasing for a deletion, and ends the snapshot, which has the session that will be deleted.
func (s *Store) beginErasing() error {
	for {
		s.erasing.RLock()
		if s.snapshot == nil {
			return nil
		}
		s.erasing.RUnlock()
		if err := s.endSnapshot(); err != nil {
			return err
		}
	}
}

func (s *Store) endSnapshot() error {
	s.erasing.Lock()
	defer s.erasing.Unlock()
	if s.snapshot == nil {
		return nil
	}
	return s.snapshot.end()
}
