package disklog

import "github.com/cockroachdb/pebble/v2/vfs"

// haltFile is a file of the disk that is open for writing, or a directory.
type haltFile struct {
	vfs.File
	fs   *haltFS
	name string
}

func (f *haltFile) Write(p []byte) (int, error) {
	if !f.fs.off() {
		_, err := f.File.Write(p)
		f.fs.check("write", f.name, err)
	}
	return len(p), nil
}

func (f *haltFile) WriteAt(p []byte, off int64) (int, error) {
	if !f.fs.off() {
		_, err := f.File.WriteAt(p, off)
		f.fs.check("write", f.name, err)
	}
	return len(p), nil
}

func (f *haltFile) Sync() error {
	if !f.fs.off() {
		f.fs.check("sync", f.name, f.File.Sync())
	}
	return nil
}

func (f *haltFile) SyncData() error {
	if !f.fs.off() {
		f.fs.check("sync", f.name, f.File.SyncData())
	}
	return nil
}

func (f *haltFile) SyncTo(length int64) (fullSync bool, err error) {
	if f.fs.off() {
		return false, nil
	}
	fullSync, err = f.File.SyncTo(length)
	f.fs.check("sync", f.name, err)
	return fullSync && err == nil, nil
}

// Preallocate is an optimisation; its failure means nothing.
func (f *haltFile) Preallocate(offset, length int64) error {
	if !f.fs.off() {
		return f.File.Preallocate(offset, length)
	}
	return nil
}

func (f *haltFile) Close() error {
	err := f.File.Close()
	if !f.fs.off() {
		f.fs.check("close", f.name, err)
	}
	return nil
}
