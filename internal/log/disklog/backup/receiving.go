package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Receiving is a file of a draft that is being received.
type Receiving struct {
	draft *Draft
	file  vfs.File
	of    File
	sum   hash.Hash
	got   uint64
}

// Create begins a file, and replaces one with the same name.
func (d *Draft) Create(of File) (*Receiving, error) {
	if err := makeDirs(d.fs, d.temp, of.Name); err != nil {
		return nil, err
	}
	file, err := d.fs.Create(of.in(d.temp), vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	return &Receiving{d, file, of, sha256.New(), 0}, nil
}

// Write adds to the file.
func (r *Receiving) Write(p []byte) (int, error) {
	n, err := r.file.Write(p)
	r.sum.Write(p[:n])
	r.got += uint64(n)
	return n, err
}

// Finish completes the file, checks its size, and returns the manifest's entry. The file's content is durable then,
// its name is not.
func (r *Receiving) Finish() (File, error) {
	if err := errors.Join(r.file.Sync(), r.file.Close()); err != nil {
		return File{}, err
	}
	if r.got != r.of.Size {
		return File{}, fmt.Errorf("%d bytes of %s were sent instead of %d", r.got, r.of.Name, r.of.Size)
	}
	r.of.SHA256 = hex.EncodeToString(r.sum.Sum(nil))
	return r.of, nil
}

// Abandon removes an incomplete file.
func (r *Receiving) Abandon() error { return errors.Join(r.file.Close(), r.draft.Remove(r.of.Name)) }
