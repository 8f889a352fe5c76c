package disklog

import (
	"errors"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// quotaFS is a disk of a size in memory.
type quotaFS struct {
	vfs.FS

	mu    sync.Mutex
	size  uint64
	used  uint64
	files map[string]*quotaNode
}

type quotaNode struct{ length int64 }

func newQuotaFS(size uint64) *quotaFS {
	return &quotaFS{FS: vfs.NewMem(), size: size, files: map[string]*quotaNode{}}
}

// resize makes the disk larger or smaller, as other users of it do.
func (fs *quotaFS) resize(size uint64) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.size = size
}

// fill leaves no room.
func (fs *quotaFS) fill() {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.size = fs.used
}

// grow takes room for a file up to a length, or as much as there is.
func (fs *quotaFS) grow(n *quotaNode, to int64) (granted int64, err error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	more := max(to-n.length, 0)
	if free := int64(fs.size) - int64(fs.used); more > max(free, 0) {
		more, err = max(free, 0), syscall.ENOSPC
	}
	n.length += more
	fs.used += uint64(more)
	return n.length, err
}

func (fs *quotaFS) free(name string) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if n := fs.files[name]; n != nil {
		fs.used -= uint64(n.length)
		delete(fs.files, name)
	}
}

func (fs *quotaFS) opened(f vfs.File, name string, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	n := fs.files[name]
	if n == nil {
		n = &quotaNode{}
		fs.files[name] = n
	}
	return &quotaFile{File: f, fs: fs, node: n}, nil
}

func (fs *quotaFS) moved(from, to string) {
	fs.free(to)
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if n := fs.files[from]; n != nil {
		fs.files[to] = n
		delete(fs.files, from)
	}
}

func (fs *quotaFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	fs.free(name)
	f, err := fs.FS.Create(name, category)
	return fs.opened(f, name, err)
}

func (fs *quotaFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := fs.FS.OpenReadWrite(name, category, opts...)
	return fs.opened(f, name, err)
}

func (fs *quotaFS) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.ReuseForWrite(from, to, category)
	if err == nil {
		fs.moved(from, to)
	}
	return fs.opened(f, to, err)
}

func (fs *quotaFS) Rename(from, to string) error {
	err := fs.FS.Rename(from, to)
	if err == nil {
		fs.moved(from, to)
	}
	return err
}

func (fs *quotaFS) Remove(name string) error {
	err := fs.FS.Remove(name)
	if err == nil {
		fs.free(name)
	}
	return err
}

func (fs *quotaFS) GetDiskUsage(string) (vfs.DiskUsage, error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return vfs.DiskUsage{AvailBytes: fs.size - min(fs.used, fs.size), TotalBytes: fs.size, UsedBytes: fs.used}, nil
}

type quotaFile struct {
	vfs.File
	fs   *quotaFS
	node *quotaNode
	at   int64
}

func (f *quotaFile) Write(p []byte) (int, error) {
	n, err := f.write(p, f.at, f.File.Write)
	f.at += int64(n)
	return n, err
}

func (f *quotaFile) WriteAt(p []byte, off int64) (int, error) {
	return f.write(p, off, func(p []byte) (int, error) { return f.File.WriteAt(p, off) })
}

// write writes as much as there is room for.
func (f *quotaFile) write(p []byte, off int64, write func([]byte) (int, error)) (int, error) {
	length, full := f.fs.grow(f.node, off+int64(len(p)))
	n, err := write(p[:min(int64(len(p)), max(length-off, 0))])
	return n, errors.Join(err, full)
}

// Preallocate is something that not every file system can do.
func (f *quotaFile) Preallocate(int64, int64) error { return syscall.EOPNOTSUPP }
