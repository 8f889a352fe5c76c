package disklog

import (
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Writable reports whether this process may create files in a directory of the machine. It is true for a directory
// that does not exist yet.
func Writable(dir string) bool {
	const write = 2
	err := syscall.Access(dir, write)
	return err == nil || oserror.IsNotExist(err)
}

// readFS is a disk on which every change fails.
type readFS struct{ vfs.FS }

// List lists a directory without Pebble's options files: a damaged one would keep the store from being opened, and
// nothing depends on them.
func (fs readFS) List(dir string) ([]string, error) {
	names, err := fs.FS.List(dir)
	return slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, optionsPrefix) }), err
}

// Lock does nothing: the lock on the directory around the database covers it.
func (readFS) Lock(string) (io.Closer, error) { return unlocked{}, nil }

type unlocked struct{}

func (unlocked) Close() error { return nil }

// Create fails.
func (readFS) Create(string, vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, &eventlog.ReadOnlyError{}
}

// ReuseForWrite fails.
func (readFS) ReuseForWrite(_, _ string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, &eventlog.ReadOnlyError{}
}

// OpenReadWrite fails.
func (readFS) OpenReadWrite(string, vfs.DiskWriteCategory, ...vfs.OpenOption) (vfs.File, error) {
	return nil, &eventlog.ReadOnlyError{}
}

// Link fails.
func (readFS) Link(_, _ string) error { return &eventlog.ReadOnlyError{} }

// Remove fails.
func (readFS) Remove(string) error { return &eventlog.ReadOnlyError{} }

// RemoveAll fails.
func (readFS) RemoveAll(string) error { return &eventlog.ReadOnlyError{} }

// Rename fails.
func (readFS) Rename(_, _ string) error { return &eventlog.ReadOnlyError{} }

// MkdirAll fails.
func (readFS) MkdirAll(string, os.FileMode) error { return &eventlog.ReadOnlyError{} }

// Unwrap returns the disk.
func (fs readFS) Unwrap() vfs.FS { return fs.FS }

// lockToRead prevents other processes from writing to the directory while it is read. If the directory cannot be
// locked, because it is a copy or not writable, it is read without a lock.
func lockToRead(fs vfs.FS, dir string) (io.Closer, error) {
	if _, err := fs.Stat(fs.PathJoin(dir, lockFile)); err != nil {
		if oserror.IsNotExist(err) {
			return unlocked{}, nil
		}
		if errors.Is(err, syscall.ENOTDIR) {
			err = fmt.Errorf("%s is not a directory", dir)
		}
		return nil, err
	}
	lock, err := fs.Lock(fs.PathJoin(dir, lockFile))
	if _, isPath := errors.AsType[*iofs.PathError](err); isPath {
		return unlocked{}, nil
	}
	if err != nil {
		return nil, lockedError(fs, dir, err)
	}
	return lock, nil
}

// prepareToRead checks whether the directory has all that a store wrote there.
func (s *Store) prepareToRead(dir string, empty bool) (err error) {
	var now counted
	if !empty {
		now, err = s.recall(dir)
	}
	if err == nil && now.manifest.number == 0 {
		err = &FormatError{Dir: dir, Reason: "it holds no event log"}
	}
	if err != nil {
		return err
	}
	return s.checkFiles(dir)
}
