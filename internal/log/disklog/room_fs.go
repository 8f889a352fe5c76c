package disklog

import (
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// roomFS is the disk, but retries changes that failed because there was no room. It does not retry a failed sync,
// because it is unknown which bytes reached the disk.
type roomFS struct {
	vfs.FS
	room *room
}

// try retries a change until it succeeds, fails for another reason, or no room can be expected.
func (fs roomFS) try(change func() error) error {
	for {
		err := change()
		if err == nil || !fs.room.more(err) {
			return err
		}
	}
}

func (fs roomFS) open(open func() (vfs.File, error)) (f vfs.File, err error) {
	err = fs.try(func() error {
		f, err = open()
		return err
	})
	if err != nil {
		return nil, err
	}
	return roomFile{f, fs}, nil
}

// Create makes a file.
func (fs roomFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return fs.open(func() (vfs.File, error) { return fs.FS.Create(name, category) })
}

// ReuseForWrite renames a file and opens it for writing.
func (fs roomFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return fs.open(func() (vfs.File, error) { return fs.FS.ReuseForWrite(oldname, newname, category) })
}

// OpenReadWrite opens a file for reading and writing.
func (fs roomFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return fs.open(func() (vfs.File, error) { return fs.FS.OpenReadWrite(name, category, opts...) })
}

// Link makes a hard link.
func (fs roomFS) Link(oldname, newname string) error {
	return fs.try(func() error { return fs.FS.Link(oldname, newname) })
}

// Rename renames a file.
func (fs roomFS) Rename(oldname, newname string) error {
	return fs.try(func() error { return fs.FS.Rename(oldname, newname) })
}

// MkdirAll makes a directory.
func (fs roomFS) MkdirAll(dir string, perm os.FileMode) error {
	return fs.try(func() error { return fs.FS.MkdirAll(dir, perm) })
}

// Unwrap returns the disk.
func (fs roomFS) Unwrap() vfs.FS { return fs.FS }

// roomFile is a file of a roomFS.
type roomFile struct {
	vfs.File
	fs roomFS
}

// all calls write until all of p is written.
func (f roomFile) all(p []byte, write func(p []byte, done int) (int, error)) (done int, err error) {
	err = f.fs.try(func() error {
		n, err := write(p[done:], done)
		done += n
		return err
	})
	return done, err
}

func (f roomFile) Write(p []byte) (int, error) {
	return f.all(p, func(p []byte, _ int) (int, error) { return f.File.Write(p) })
}

func (f roomFile) WriteAt(p []byte, off int64) (int, error) {
	return f.all(p, func(p []byte, done int) (int, error) { return f.File.WriteAt(p, off+int64(done)) })
}
