package disklog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The modes of a store's directories and files: only the owner has access.
const (
	privateDir  fs.FileMode = 0o700
	privateFile fs.FileMode = 0o600
)

// PrivateFS returns the file system of the machine, on which only the owner of new files has access to them.
func PrivateFS() vfs.FS { return privateFS{vfs.Default} }

// privateFS is the machine's file system, with every new file and directory readable by its owner alone, whatever the
// umask.
type privateFS struct{ vfs.FS }

func (p privateFS) restrict(f vfs.File, name string, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(name, privateFile); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Create makes a file.
func (p privateFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := p.FS.Create(name, category)
	return p.restrict(f, name, err)
}

// OpenReadWrite opens a file for reading and writing.
func (p privateFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := p.FS.OpenReadWrite(name, category, opts...)
	return p.restrict(f, name, err)
}

// ReuseForWrite renames a file and opens it for writing.
func (p privateFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := p.FS.ReuseForWrite(oldname, newname, category)
	return p.restrict(f, newname, err)
}

// MkdirAll makes a directory.
func (p privateFS) MkdirAll(dir string, perm os.FileMode) error {
	return p.FS.MkdirAll(dir, perm&privateDir)
}

// Lock takes a lock file.
func (p privateFS) Lock(name string) (io.Closer, error) {
	lock, err := p.FS.Lock(name)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(name, privateFile); err != nil && !errors.Is(err, fs.ErrPermission) {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// Unwrap returns the machine's file system.
func (p privateFS) Unwrap() vfs.FS { return p.FS }

// makePrivate removes other users' access to a directory, which may be older than the store, and to the store's files
// in it. It changes no other files, and follows no symbolic links. It returns an error if a file of the store stays
// readable for everybody.
func makePrivate(dir string, logger *slog.Logger) error {
	r := restriction{dir: dir, logger: logger}
	if err := r.folder(dir, isOwnName); err != nil {
		return err
	}
	data := filepath.Join(dir, dataDir)
	if _, err := os.Stat(data); !errors.Is(err, fs.ErrNotExist) { // there is none in a new store
		if err := r.folder(data, func(string) bool { return true }); err != nil {
			return err
		}
	}
	if r.mended > 0 {
		logger.Warn("other users had access to the data directory; it was taken away", "dir", dir, "files_and_directories", r.mended)
	}
	return nil
}

// restriction removes other users' access to the store's files in a directory.
type restriction struct {
	dir    string
	logger *slog.Logger
	mended int
}

// folder restricts a directory, and the store's files in it.
func (r *restriction) folder(at string, own func(name string) bool) error {
	info, err := os.Stat(at)
	if err != nil {
		return err
	}
	if err := r.restrict(at, info, privateDir); err != nil {
		return err
	}
	entries, err := os.ReadDir(at)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !own(entry.Name()) {
			continue
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := r.restrict(filepath.Join(at, entry.Name()), info, privateFile); err != nil {
			return err
		}
	}
	return nil
}

// restrict removes from a file's mode all permissions that are not in allowed.
func (r *restriction) restrict(path string, info fs.FileInfo, allowed fs.FileMode) error {
	mode := info.Mode()
	if mode.Perm()&^allowed == 0 {
		return nil
	}
	err := os.Chmod(path, mode&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky)|mode.Perm()&allowed)
	switch {
	case err == nil:
		r.mended++
		return nil
	case !errors.Is(err, fs.ErrPermission):
		return err
	case path != r.dir && mode.Perm()&0o004 != 0:
		return fmt.Errorf("%s can be read by every user (mode %04o) and belongs to somebody else: give it to the daemon's user, or take the others' access away", path, mode.Perm())
	}
	// A volume that was given to a group has such a mode. The files in it are private nonetheless.
	r.logger.Warn("other users have access to a directory or file that is not the daemon's own", "path", path, "mode", fmt.Sprintf("%04o", mode.Perm()))
	return nil
}

// isOwnName reports whether a file next to the database's directory is the store's.
func isOwnName(name string) bool {
	if strings.HasPrefix(name, reservePrefix) {
		return true
	}
	switch strings.TrimSuffix(name, ".tmp") {
	case formatFile, lockFile, ownerFile, inventoryFile, encryptionFile, copyingFile:
		return true
	}
	return false
}
