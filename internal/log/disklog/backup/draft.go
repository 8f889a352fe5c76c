package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/disklog/durable"
)

// draftName is the directory in which files are collected until the backup is complete.
const draftName = ".contextd-backup"

// Draft is a backup that is being taken. Its files are collected in a temporary directory: in the final one if that
// exists, because it may be a volume of its own, and otherwise next to it.
type Draft struct {
	fs     vfs.FS
	dir    string // where the backup will be
	temp   string
	within bool
	held   io.Closer // nil once it is released
	// placing says that files are in the final directory.
	placing bool
}

// Begin begins a backup in a directory that is empty or does not exist. It first removes the files of an interrupted
// backup.
func Begin(fs vfs.FS, dir string) (*Draft, error) {
	dir = filepath.Clean(dir)
	names, there, err := list(fs, dir)
	if err != nil {
		return nil, err
	}
	d := &Draft{fs: fs, dir: dir, within: there, temp: fs.PathJoin(dir, draftName)}
	began := slices.Contains(names, draftName)
	for _, name := range names {
		if !began || name != draftName && name != disklog.BackupFile && !isStores(name) {
			return nil, &NotEmptyError{dir, name}
		}
	}
	if !there {
		d.temp = fs.PathJoin(fs.PathDir(dir), draftName+"-"+fs.PathBase(dir))
		if err := durable.MakeDir(fs, fs.PathDir(dir)); err != nil {
			return nil, err
		}
	}
	if err := fs.MkdirAll(d.temp, 0o700); err != nil {
		return nil, err
	}
	if d.held, err = lock(fs, d.temp); err != nil {
		return nil, err
	}
	if err := d.clear(slices.Contains(names, disklog.BackupFile)); err != nil {
		return nil, errors.Join(err, d.release())
	}
	return d, nil
}

// clear removes the files of an interrupted backup. placed says that it had begun to put files in place. These are
// removed first: while there are files in the temporary directory, they are no whole backup.
func (d *Draft) clear(placed bool) error {
	left, _, err := list(d.fs, d.temp)
	if err != nil {
		return err
	}
	left = slices.DeleteFunc(left, func(name string) bool { return name == lockFile })
	if placed {
		if len(left) == 0 {
			if err := d.syncMoves(); err != nil {
				return err
			}
			return errors.Join(&NotEmptyError{d.dir, "a whole backup"}, d.fs.RemoveAll(d.temp))
		}
		if err := d.unplace(); err != nil {
			return err
		}
	}
	for _, name := range left {
		if err := d.fs.RemoveAll(d.fs.PathJoin(d.temp, name)); err != nil {
			return err
		}
	}
	return nil
}

// Link links a file from an earlier backup, or copies it if it cannot be linked.
func (d *Draft) Link(ctx context.Context, base *Manifest, f File) error {
	if err := makeDirs(d.fs, d.temp, f.Name); err != nil {
		return err
	}
	from, to := f.in(base.dir), f.in(d.temp)
	if err := d.fs.RemoveAll(to); err != nil { // an earlier call may have sent it
		return err
	}
	if d.fs.Link(from, to) == nil {
		return nil
	}
	_, err := copyHashed(ctx, d.fs, from, to)
	return err
}

// Remove removes a file.
func (d *Draft) Remove(name string) error { return d.fs.Remove(File{Name: name}.in(d.temp)) }

// Finish puts the backup in place. Its content is durable before it gets its name, and the name is durable on return.
// The draft must have only files that the manifest lists, and these must be durable.
func (d *Draft) Finish(m *Manifest) error {
	if err := m.write(d.fs, d.temp); err != nil {
		return err
	}
	if err := errors.Join(syncAll(d.fs, d.temp), durable.SyncDir(d.fs, d.fs.PathDir(d.temp))); err != nil {
		return err
	}
	if d.within {
		return d.place()
	}
	if err := d.fs.Rename(d.temp, d.dir); err != nil {
		return err
	}
	_ = d.fs.Remove(d.fs.PathJoin(d.dir, lockFile)) // if it stays, it does no harm
	return errors.Join(d.release(), durable.SyncDir(d.fs, d.fs.PathDir(d.dir)))
}

// place moves the files within the final directory. The manifest is moved first, durably: with it the directory is never
// mistaken for a data directory, and missing files are reported by name.
func (d *Draft) place() error {
	there, err := d.fs.List(d.dir)
	if err != nil {
		return err
	}
	if len(there) > 1 {
		return fmt.Errorf("something else was put into %s meanwhile", d.dir)
	}
	names, err := d.fs.List(d.temp)
	if err != nil {
		return err
	}
	d.placing = true
	for _, some := range [][]string{{disklog.BackupFile}, slices.DeleteFunc(names, func(name string) bool {
		name = d.fs.PathBase(name)
		return name == disklog.BackupFile || name == lockFile
	})} {
		for _, name := range some {
			name = d.fs.PathBase(name)
			if err := d.fs.Rename(d.fs.PathJoin(d.temp, name), d.fs.PathJoin(d.dir, name)); err != nil {
				return err
			}
		}
		if err := d.syncMoves(); err != nil {
			return err
		}
	}
	d.placing = false
	return errors.Join(d.release(), d.fs.RemoveAll(d.temp))
}

// syncMoves makes the moves from the temporary directory to the final one durable.
func (d *Draft) syncMoves() error {
	return errors.Join(durable.SyncDir(d.fs, d.dir), durable.SyncDir(d.fs, d.temp))
}

func (d *Draft) release() (err error) {
	if d.held != nil {
		err, d.held = d.held.Close(), nil
	}
	return err
}

// Abandon removes the draft.
func (d *Draft) Abandon() error {
	var err error
	if d.placing {
		err = d.unplace()
	}
	return errors.Join(err, d.release(), d.fs.RemoveAll(d.temp))
}

// unplace removes the files that were put in place, the manifest last.
func (d *Draft) unplace() error {
	if err := removeStores(d.fs, d.dir); err != nil {
		return err
	}
	return errors.Join(d.fs.RemoveAll(d.fs.PathJoin(d.dir, disklog.BackupFile)), durable.SyncDir(d.fs, d.dir))
}
