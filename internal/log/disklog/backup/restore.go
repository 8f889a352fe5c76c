package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/disklog/durable"
)

// Restore makes a data directory from a backup, in a directory that is empty or does not exist. It first removes the
// files of an interrupted restore. Until all is durable, a file in the directory prevents stores from being opened
// there. After an error nothing remains. progress is called before and after each file is copied.
func (m *Manifest) Restore(ctx context.Context, fs vfs.FS, dir string, progress func(f File, done bool)) (err error) {
	names, _, err := list(fs, dir)
	if err != nil {
		return err
	}
	began := slices.Contains(names, disklog.RestoringFile)
	for _, name := range names {
		// A process that tried to open a store there may have locked the directory, and written its name.
		if name != lockFile && name != "OWNER" && (!began || name != disklog.RestoringFile && !isStores(name)) {
			return &NotEmptyError{dir, name}
		}
	}
	if err := durable.MakeDir(fs, dir); err != nil {
		return err
	}
	held, err := lock(fs, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.Close(), fs.Remove(fs.PathJoin(dir, lockFile))) }()
	marker := fs.PathJoin(dir, disklog.RestoringFile)
	if err = durable.Write(fs, marker, "A restore into this directory is under way, or was interrupted.\n", false); err == nil {
		err = removeStores(fs, dir) // which makes the marker's entry durable, too
	}
	for i := 0; err == nil && i < len(m.Files); i++ {
		progress(m.Files[i], false)
		err = m.copy(ctx, fs, m.Files[i], dir)
		progress(m.Files[i], true)
	}
	if err == nil {
		err = disklog.MakeInventory(fs, dir)
	}
	if err == nil {
		err = syncAll(fs, dir)
	}
	if err != nil {
		if failed := removeStores(fs, dir); failed != nil {
			return errors.Join(err, failed) // the marker stays
		}
	}
	return errors.Join(err, fs.Remove(marker), durable.SyncDir(fs, dir))
}

// copy copies a file of the backup into a directory, and compares it with the manifest.
func (m *Manifest) copy(ctx context.Context, fs vfs.FS, f File, dir string) error {
	if err := makeDirs(fs, dir, f.Name); err != nil {
		return err
	}
	sum, err := copyHashed(ctx, fs, f.in(m.dir), f.in(dir))
	if err == nil && sum != f.SHA256 {
		err = fmt.Errorf("%s in %s is not what was backed up", f.Name, m.dir)
	}
	return err
}
