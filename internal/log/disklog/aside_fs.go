package disklog

import (
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// asideFS is the database's disk, except for one directory next to the database. A failure in that directory is an
// ordinary error: it neither halts the store nor uses its reserve of disk space.
type asideFS struct {
	vfs.FS
	disk vfs.FS
	dir  string
}

func (fs *asideFS) at(path string) vfs.FS {
	for at := path; len(at) >= len(fs.dir); at = fs.PathDir(at) {
		if at == fs.dir {
			return fs.disk
		}
	}
	return fs.FS
}

// Create makes a file.
func (fs *asideFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return fs.at(name).Create(name, category)
}

// OpenReadWrite opens a file for reading and writing.
func (fs *asideFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return fs.at(name).OpenReadWrite(name, category, opts...)
}

// OpenDir opens a directory.
func (fs *asideFS) OpenDir(name string) (vfs.File, error) { return fs.at(name).OpenDir(name) }

// Link makes a hard link.
func (fs *asideFS) Link(oldname, newname string) error { return fs.at(newname).Link(oldname, newname) }

// Remove removes a file.
func (fs *asideFS) Remove(name string) error { return fs.at(name).Remove(name) }

// RemoveAll removes a directory and what is in it.
func (fs *asideFS) RemoveAll(name string) error { return fs.at(name).RemoveAll(name) }

// Rename renames a file.
func (fs *asideFS) Rename(oldname, newname string) error {
	return fs.at(newname).Rename(oldname, newname)
}

// MkdirAll makes a directory.
func (fs *asideFS) MkdirAll(dir string, perm os.FileMode) error {
	return fs.at(dir).MkdirAll(dir, perm)
}

// Unwrap returns the database's disk.
func (fs *asideFS) Unwrap() vfs.FS { return fs.FS }
