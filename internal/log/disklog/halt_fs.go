package disklog

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// haltFS is the disk as Pebble sees it. It passes everything on until a change of the disk, or a listing, fails. From
// then on nothing reaches the disk any more: changes go to memory and are reported as done. So the disk stays as it
// was at the failure, as after a crash, and Pebble, which cannot go on properly after a failed write, neither panics
// nor does harm until it is closed. So before a successful write counts, the caller must check cause, which is set
// before the first false report.
type haltFS struct {
	vfs.FS
	// fresh, while not 0, keeps log files from being written over older ones.
	fresh atomic.Int32

	// inventory records what a later opening must find; nil if none is kept.
	inventory *inventory
	// damage records the files that cannot be read.
	damage *damage
	// lost are blob files that are missing or have the wrong size. Pebble panics if a blob file that it needs is not
	// in the directory, so they are listed nonetheless, and Pebble finds them unreadable.
	lost []string
	// syncing is called for each sync of a log file; may be nil.
	syncing func() (done func())
	// closing is closed when Close begins: waits end then. opening is set until the store is open.
	closing chan struct{}
	opening atomic.Bool

	once   sync.Once
	err    error
	halted chan struct{}
	// shadow replaces the disk once it is halted: later changes go there.
	shadow *vfs.MemFS
}

func newHaltFS(disk vfs.FS) *haltFS {
	return &haltFS{
		FS: disk, damage: newDamage(slog.New(slog.DiscardHandler)), closing: make(chan struct{}),
		halted: make(chan struct{}), shadow: vfs.NewMem(),
	}
}

// forget removes from the inventory a file that is about to be removed.
func (fs *haltFS) forget(name string) {
	if fs.inventory != nil && !fs.off() {
		fs.check("write", inventoryFile, fs.inventory.forget(name))
	}
}

// opened wraps a file that was opened for writing.
func (fs *haltFS) opened(f vfs.File, name string) vfs.File {
	if fs.inventory != nil {
		fs.inventory.made(name)
	}
	isLog, _, _ := kindOf(fs.PathBase(name))
	return &haltFile{File: f, fs: fs, name: name, timed: isLog && fs.syncing != nil}
}

// noRecycling adds n to fresh: while that is not 0, new log files do not reuse old ones.
func (fs *haltFS) noRecycling(n int32) { fs.fresh.Add(n) }

// halt cuts the disk off. Only the first cause counts.
func (fs *haltFS) halt(cause error) {
	fs.once.Do(func() {
		fs.err = cause
		close(fs.halted)
	})
}

// cause returns why the disk was cut off; nil if it was not.
func (fs *haltFS) cause() error {
	select {
	case <-fs.halted:
		return fs.err
	default:
		return nil
	}
}

// off reports whether the disk was cut off.
func (fs *haltFS) off() bool { return fs.cause() != nil }

// check handles the result of a change. An error halts the store, and the caller reports success to Pebble.
func (fs *haltFS) check(what, name string, err error) {
	if err != nil {
		fs.halt(fmt.Errorf("%s %s: %w", what, name, err))
	}
}

// shadowDir makes sure that a file can be made in memory.
func (fs *haltFS) shadowDir(name string) { _ = fs.shadow.MkdirAll(fs.PathDir(name), 0o755) }

func (fs *haltFS) shadowCreate(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	fs.shadowDir(name)
	return fs.shadow.Create(name, category)
}

// order makes all earlier changes of a marker's directory durable before the marker, whose name begins with prefix,
// is made or removed. That is needed because a manifest's marker names a new file, each marker replaces another, and
// in a crash a file system may keep later changes of a directory and lose earlier ones. Pebble syncs only once, after
// the old marker was removed.
func (fs *haltFS) order(name, prefix string) {
	if fs.off() || !strings.HasPrefix(fs.PathBase(name), prefix) {
		return
	}
	dir, err := fs.OpenDir(fs.PathDir(name))
	if err == nil {
		err = errors.Join(dir.Sync(), dir.Close())
	}
	fs.check("sync the directory of", name, err)
}

// Create makes a file.
func (fs *haltFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	fs.order(name, manifestMarker)
	if !fs.off() {
		f, err := patient(fs, func() (vfs.File, error) { return fs.FS.Create(name, category) })
		if err == nil {
			return fs.opened(f, name), nil
		}
		fs.check("create", name, err)
	}
	return fs.shadowCreate(name, category)
}

// ReuseForWrite renames a log file and opens it for overwriting. If old content must not stay on the disk, it makes a
// new file instead.
func (fs *haltFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	fs.forget(oldname)
	if fs.off() {
		return fs.shadowCreate(newname, category)
	}
	if fs.fresh.Load() == 0 {
		f, err := patient(fs, func() (vfs.File, error) { return fs.FS.ReuseForWrite(oldname, newname, category) })
		if err == nil {
			return fs.opened(f, newname), nil
		}
		if !oserror.IsNotExist(err) {
			fs.check("reuse", oldname, err)
			return fs.shadowCreate(newname, category)
		}
		// A deletion removed the old file meanwhile.
	}
	if err := fs.Remove(oldname); err != nil && !oserror.IsNotExist(err) {
		return nil, err
	}
	return fs.Create(newname, category)
}

// OpenReadWrite opens a file for reading and writing.
func (fs *haltFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	if !fs.off() {
		f, err := patient(fs, func() (vfs.File, error) { return fs.FS.OpenReadWrite(name, category, opts...) })
		if err == nil {
			return fs.opened(f, name), nil
		}
		fs.check("open", name, err)
	}
	fs.shadowDir(name)
	return fs.shadow.OpenReadWrite(name, category, opts...)
}

// Open opens a file for reading.
func (fs *haltFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if fs.off() {
		if f, err := fs.shadow.Open(name, opts...); err == nil {
			return f, nil
		}
	}
	if slices.Contains(opts, vfs.SequentialReadsOption) {
		fs.damage.putOff(fs.PathBase(name), fs.halted, fs.closing)
	}
	return fs.read(func() (vfs.File, error) { return fs.openToRead(name, opts...) })
}

// List lists a directory, and adds the lost files. A failure halts the store, like the failure of a change: Pebble
// lists near the end of its opening, and would panic, because compactions run then.
func (fs *haltFS) List(dir string) ([]string, error) {
	names, err := patient(fs, func() ([]string, error) { return fs.FS.List(dir) })
	fs.check("list", dir, err)
	for _, name := range fs.lost {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// OpenDir opens a directory for syncing.
func (fs *haltFS) OpenDir(name string) (vfs.File, error) {
	f, err := patient(fs, func() (vfs.File, error) { return fs.FS.OpenDir(name) })
	if err != nil {
		return nil, err
	}
	return &haltFile{File: f, fs: fs, name: name}, nil
}

// Link makes a hard link.
func (fs *haltFS) Link(oldname, newname string) error {
	if !fs.off() {
		fs.check("link", oldname, fs.FS.Link(oldname, newname))
	}
	return nil
}

// Remove removes a file. If the file does not exist, that is an error but does not halt the store.
func (fs *haltFS) Remove(name string) error {
	fs.forget(name)
	fs.order(name, markerPrefix)
	if !fs.off() {
		err := fs.FS.Remove(name)
		if oserror.IsNotExist(err) {
			return err
		}
		fs.check("remove", name, err)
		return nil
	}
	_ = fs.shadow.Remove(name)
	return nil
}

// RemoveAll removes a directory and what is in it.
func (fs *haltFS) RemoveAll(name string) error {
	if !fs.off() {
		fs.check("remove", name, fs.FS.RemoveAll(name))
	}
	return nil
}

// Rename renames a file.
func (fs *haltFS) Rename(oldname, newname string) error {
	fs.forget(oldname)
	if !fs.off() {
		fs.check("rename", oldname, fs.FS.Rename(oldname, newname))
		return nil
	}
	fs.shadowDir(newname)
	_ = fs.shadow.Rename(oldname, newname)
	return nil
}

// MkdirAll makes a directory.
func (fs *haltFS) MkdirAll(dir string, perm os.FileMode) error {
	if !fs.off() {
		fs.check("make directory", dir, fs.FS.MkdirAll(dir, perm))
	}
	return nil
}

// Stat describes a file.
func (fs *haltFS) Stat(name string) (vfs.FileInfo, error) {
	if fs.off() {
		if info, err := fs.shadow.Stat(name); err == nil {
			return info, nil
		}
	}
	return fs.FS.Stat(name)
}

// Unwrap returns the disk.
func (fs *haltFS) Unwrap() vfs.FS { return fs.FS }
