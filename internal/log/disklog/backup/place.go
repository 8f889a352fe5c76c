package backup

import (
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/disklog/durable"
)

// lockFile is locked while a backup or a restore writes to a directory.
const lockFile = "LOCK"

// NotEmptyError says that a directory is not empty.
type NotEmptyError struct{ Dir, Name string }

func (e *NotEmptyError) Error() string {
	return fmt.Sprintf("%s is not empty: it has %s", e.Dir, e.Name)
}

// list returns the names in a directory; there is false if it does not exist.
func list(fs vfs.FS, dir string) (names []string, there bool, err error) {
	names, err = fs.List(dir)
	if oserror.IsNotExist(err) {
		return nil, false, nil
	}
	for i := range names {
		names[i] = fs.PathBase(names[i])
	}
	slices.Sort(names)
	return names, true, err
}

// isStores reports whether a store has a file or directory with this name, which may be its database.
func isStores(name string) bool { return slices.Contains(stores, name) }

var stores = []string{"FORMAT", "INVENTORY", "ENCRYPTION", "db"}

// removeStores removes the files of a store's backup from a directory, durably.
func removeStores(fs vfs.FS, dir string) (err error) {
	for _, name := range stores {
		err = errors.Join(err, fs.RemoveAll(fs.PathJoin(dir, name)))
	}
	return errors.Join(err, durable.SyncDir(fs, dir))
}

// lock keeps other backups, restores and stores from a directory, if the file system has locks. A backup may be on a
// file system without locks, where a store could not be.
func lock(fs vfs.FS, dir string) (io.Closer, error) {
	held, err := fs.Lock(fs.PathJoin(dir, lockFile))
	if errors.Is(err, syscall.ENOLCK) || errors.Is(err, errors.ErrUnsupported) {
		return io.NopCloser(nil), nil
	}
	if _, isPath := errors.AsType[*iofs.PathError](err); err != nil && !isPath {
		err = &disklog.LockedError{Dir: dir, Cause: err}
	}
	return held, err
}

// makeDirs makes the directory of a file in dir, for a name with slashes.
func makeDirs(fs vfs.FS, dir, name string) error {
	if at := strings.LastIndexByte(name, '/'); at >= 0 {
		return fs.MkdirAll(filepath.Join(dir, filepath.FromSlash(name[:at])), 0o700)
	}
	return nil
}

// syncAll makes the entries of a directory, and of all directories in it, durable.
func syncAll(fs vfs.FS, dir string) error {
	names, err := fs.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		path := fs.PathJoin(dir, fs.PathBase(name))
		if info, err := fs.Stat(path); err != nil {
			return err
		} else if !info.IsDir() {
			continue
		}
		if err := syncAll(fs, path); err != nil {
			return err
		}
	}
	return durable.SyncDir(fs, dir)
}
