// Package crashdisk has a disk in memory for tests, on which a power failure loses as much as POSIX permits: any of
// the changes of a directory and of the blocks of a file that were not synced may be lost, even if later ones are
// kept. Only a rename is kept or lost as a whole.
package crashdisk

import (
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Disk is a file system that returns its state after a power failure at any time.
type Disk struct {
	*vfs.MemFS // what a running program sees

	mu      sync.Mutex
	changed func(name string)
	root    *node
	// changes of directories that may be lost, and durable ones after them, oldest first.
	changes []*change
}

// New returns an empty disk.
func New() *Disk { return &Disk{MemFS: vfs.NewMem(), root: newDir()} }

// OnChange sets a function that is called after each change of a directory; nil is none.
func (d *Disk) OnChange(f func(name string)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.changed = f
}

// node is a file or a directory.
type node struct {
	data, synced []byte
	// cut says that the file was truncated since it was synced.
	cut bool

	now, kept map[string]*node // a directory's entries, all and durable ones; nil for a file
}

func newDir() *node { return &node{now: map[string]*node{}, kept: map[string]*node{}} }

// edit puts a node into a directory, or removes the entry with the name.
type edit struct {
	dir  *node
	name string
	node *node
}

func (e edit) apply(entries map[string]*node) {
	if e.node == nil {
		delete(entries, e.name)
	} else {
		entries[e.name] = e.node
	}
}

// change is a change of directories that is kept or lost as a whole. It is durable when all its directories are
// synced.
type change struct {
	edits    []edit
	unsynced []*node
}

// find returns the directory of a path, and the last part of the path. mu is held.
func (d *Disk) find(name string) (dir *node, last string) {
	at := d.root
	parts := strings.Split(strings.Trim(path.Clean("/"+name), "/"), "/")
	for _, part := range parts[:len(parts)-1] {
		if at = at.now[part]; at == nil {
			return newDir(), ""
		}
	}
	return at, parts[len(parts)-1]
}

// node returns the file or directory of a path, or nil. mu is held.
func (d *Disk) node(name string) *node {
	dir, last := d.find(name)
	if last == "" {
		return d.root
	}
	return dir.now[last]
}

// enter records a change of directories. mu is held.
func (d *Disk) enter(edits ...edit) {
	c := &change{edits: edits}
	for _, e := range edits {
		e.apply(e.dir.now)
		if !slices.Contains(c.unsynced, e.dir) {
			c.unsynced = append(c.unsynced, e.dir)
		}
	}
	d.changes = append(d.changes, c)
}

// do makes a change and then reports it.
func (d *Disk) do(name string, change func() error) error {
	d.mu.Lock()
	err, changed := change(), d.changed
	d.mu.Unlock()
	if err == nil && changed != nil {
		changed(name)
	}
	return err
}

// Create makes or truncates a file.
func (d *Disk) Create(name string, category vfs.DiskWriteCategory) (f vfs.File, err error) {
	err = d.do(name, func() error {
		made, err := d.MemFS.Create(name, category)
		if err != nil {
			return err
		}
		at := d.node(name)
		if at == nil {
			dir, last := d.find(name)
			at = &node{}
			d.enter(edit{dir, last, at})
		}
		at.data, at.cut = nil, true
		f = &file{File: made, disk: d, node: at}
		return nil
	})
	return f, err
}

// OpenReadWrite opens a file, or makes it.
func (d *Disk) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	if _, err := d.Stat(name); err != nil {
		return d.Create(name, category)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	f, err := d.MemFS.OpenReadWrite(name, category, opts...)
	if err != nil {
		return nil, err
	}
	return &file{File: f, disk: d, node: d.node(name)}, nil
}

// ReuseForWrite renames a file and opens it.
func (d *Disk) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := d.Rename(oldname, newname); err != nil {
		return nil, err
	}
	return d.OpenReadWrite(newname, category)
}

// OpenDir opens a directory to sync it.
func (d *Disk) OpenDir(name string) (vfs.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f, err := d.MemFS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &file{File: f, disk: d, node: d.node(name)}, nil
}

// Link makes a hard link.
func (d *Disk) Link(oldname, newname string) error {
	return d.do(newname, func() error {
		if err := d.MemFS.Link(oldname, newname); err != nil {
			return err
		}
		dir, last := d.find(newname)
		d.enter(edit{dir, last, d.node(oldname)})
		return nil
	})
}

// Rename renames a file or a directory.
func (d *Disk) Rename(oldname, newname string) error {
	return d.do(newname, func() error {
		if err := d.MemFS.Rename(oldname, newname); err != nil {
			return err
		}
		from, old := d.find(oldname)
		to, last := d.find(newname)
		d.enter(edit{to, last, from.now[old]}, edit{from, old, nil})
		return nil
	})
}

// Remove removes a file or an empty directory.
func (d *Disk) Remove(name string) error {
	return d.do(name, func() error {
		if err := d.MemFS.Remove(name); err != nil {
			return err
		}
		dir, last := d.find(name)
		d.enter(edit{dir, last, nil})
		return nil
	})
}

// RemoveAll removes the entries of a directory, one after the other, and then the directory.
func (d *Disk) RemoveAll(name string) error {
	d.mu.Lock()
	at := d.node(name)
	var inner []string
	if at != nil {
		inner = slices.Sorted(maps.Keys(at.now))
	}
	d.mu.Unlock()
	if at == nil {
		return nil
	}
	for _, entry := range inner {
		if err := d.RemoveAll(path.Join(name, entry)); err != nil {
			return err
		}
	}
	return d.Remove(name)
}

// MkdirAll makes a directory and its parents.
func (d *Disk) MkdirAll(name string, perm os.FileMode) error {
	if parent := path.Dir(name); parent != name && parent != "." {
		if err := d.MkdirAll(parent, perm); err != nil {
			return err
		}
	}
	if _, err := d.Stat(name); err == nil {
		return nil
	}
	return d.do(name, func() error {
		if err := d.MemFS.MkdirAll(name, perm); err != nil {
			return err
		}
		dir, last := d.find(name)
		d.enter(edit{dir, last, newDir()})
		return nil
	})
}

// Lock takes a lock file.
func (d *Disk) Lock(name string) (lock io.Closer, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if lock, err = d.MemFS.Lock(name); err == nil && d.node(name) == nil {
		dir, last := d.find(name)
		d.enter(edit{dir, last, &node{}})
	}
	return lock, err
}

// Unwrap returns nil, because the file system below does not know what is durable.
func (d *Disk) Unwrap() vfs.FS { return nil }

// file is open for writing, or a directory that may be synced.
type file struct {
	vfs.File
	disk *Disk
	node *node
	pos  int64
}

func (f *file) Write(p []byte) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	f.node.write(p, f.pos)
	n, err := f.File.Write(slices.Clone(p))
	f.pos += int64(n)
	return n, err
}

func (f *file) WriteAt(p []byte, off int64) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	f.node.write(p, off)
	return f.File.WriteAt(p, off)
}

func (n *node) write(p []byte, at int64) {
	if end := int(at) + len(p); end > len(n.data) {
		n.data = append(n.data, make([]byte, end-len(n.data))...)
	}
	copy(n.data[at:], p)
}

func (f *file) SyncData() error { return f.Sync() }

func (f *file) Sync() error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.node.now == nil {
		f.node.synced, f.node.cut = append(f.node.synced[:0], f.node.data...), false
		return nil
	}
	for _, c := range f.disk.changes {
		c.unsynced = slices.DeleteFunc(c.unsynced, func(n *node) bool { return n == f.node })
	}
	for len(f.disk.changes) > 0 && len(f.disk.changes[0].unsynced) == 0 {
		for _, e := range f.disk.changes[0].edits {
			e.apply(e.dir.kept)
		}
		f.disk.changes = f.disk.changes[1:]
	}
	return nil
}
