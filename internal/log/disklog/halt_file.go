package disklog

import (
	"errors"
	"hash/crc32"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// haltFile is a file of the disk that is open for writing, or a directory.
type haltFile struct {
	vfs.File
	fs   *haltFS
	name string
	// timed is set for log files, on whose syncs appends wait: the time of each sync is measured.
	timed bool
	// The length and checksum of the bytes that were written in sequence.
	length int64
	sum    uint32
}

// durable records in the inventory that the bytes written so far are durable.
func (f *haltFile) durable() {
	if f.fs.inventory == nil || f.fs.off() {
		return
	}
	err := f.fs.inventory.dirSynced(f.name)
	if err == nil && f.length > 0 {
		err = f.fs.inventory.wrote(f.name, f.length, f.sum)
	}
	f.fs.check("write", inventoryFile, err)
}

func (f *haltFile) Write(p []byte) (int, error) {
	if !f.fs.off() {
		// The checksum is taken before the write, which may change p.
		length, sum := int64(len(p)), crc32.Update(f.sum, castagnoli, p)
		_, err := f.File.Write(p)
		f.fs.check("write", f.name, err)
		f.length, f.sum = f.length+length, sum
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

// sync makes the file durable, and reports how long that takes if the file is timed.
func (f *haltFile) sync(sync func() error) {
	if f.timed {
		defer f.fs.syncing()()
	}
	f.fs.check("sync", f.name, sync())
}

func (f *haltFile) Sync() error {
	if !f.fs.off() {
		f.sync(f.File.Sync)
		f.durable()
	}
	return nil
}

func (f *haltFile) SyncData() error {
	if !f.fs.off() {
		f.sync(f.File.SyncData)
		f.durable()
	}
	return nil
}

func (f *haltFile) SyncTo(length int64) (fullSync bool, err error) {
	if f.fs.off() {
		return false, nil
	}
	fullSync, err = f.File.SyncTo(length)
	f.fs.check("sync", f.name, err)
	if fullSync {
		f.durable()
	}
	return fullSync && err == nil, nil
}

// Stat describes the file. Pebble panics if it cannot get the size of a log file.
func (f *haltFile) Stat() (vfs.FileInfo, error) {
	if !f.fs.off() {
		info, err := f.File.Stat()
		if err == nil {
			return info, nil
		}
		f.fs.check("stat", f.name, err)
	}
	empty, err := vfs.NewMem().Create(f.fs.PathBase(f.name), vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	info, err := empty.Stat()
	return info, errors.Join(err, empty.Close())
}

// Preallocate is an optimisation, so it ignores errors.
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
