// Package durable makes files and directories that survive a crash.
package durable

import (
	"errors"
	"io"
	"os"
	"slices"
	"syscall"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// MakeDir makes a directory, with its parents, so that it survives a crash. An existing one may have been made by a
// process that was killed before it was durable. So the parent of the deepest existing directory is synced, too, if
// that is possible: it may belong to another user.
func MakeDir(fs vfs.FS, dir string) error {
	var missing []string
	at := dir
	for ; at != fs.PathDir(at); at = fs.PathDir(at) {
		_, err := fs.Stat(at)
		if err == nil {
			break
		}
		if !oserror.IsNotExist(err) {
			return err
		}
		missing = append(missing, at)
	}
	_ = SyncDir(fs, fs.PathDir(at))
	for _, made := range slices.Backward(missing) {
		if err := fs.MkdirAll(made, os.FileMode(0o700)); err != nil {
			return err
		}
		if err := SyncDir(fs, fs.PathDir(made)); err != nil {
			return err
		}
	}
	return nil
}

// Replace writes a small file. After a crash it is the old one or the new one.
func Replace(fs vfs.FS, dir, name, text string) error {
	temporary := fs.PathJoin(dir, name+".tmp")
	if err := Write(fs, temporary, text, true); err != nil {
		return err
	}
	if err := fs.Rename(temporary, fs.PathJoin(dir, name)); err != nil {
		return err
	}
	return SyncDir(fs, dir)
}

// Whole writes a file of any size through a temporary one in the same directory. After a crash it is the old file or
// the new one. After an error the temporary file is removed.
func Whole(fs vfs.FS, temporary, name string, write func(io.Writer) error) (err error) {
	f, err := fs.Create(temporary, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if err = write(f); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = fs.Rename(temporary, name)
	}
	if err != nil {
		return errors.Join(err, fs.Remove(temporary))
	}
	if err = SyncDir(fs, fs.PathDir(name)); errors.Is(err, os.ErrPermission) {
		return nil // without permission to read a directory it cannot be synced
	}
	return err
}

// Read returns a file's content, up to limit bytes of it.
func Read(fs vfs.FS, name string, limit int64) (string, error) {
	f, err := fs.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit))
	return string(text), err
}

// Write makes or truncates a file and writes its content. With sync the content is durable on return. The file's
// entry in the directory is durable only after SyncDir.
func Write(fs vfs.FS, name, text string, sync bool) error {
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(text))
	if err == nil && sync {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

// SyncDir makes the entries of a directory durable, if the file system supports that.
func SyncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, d.Close())
}
