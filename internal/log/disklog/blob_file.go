package disklog

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/blob"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	tableSuffix = ".sst"
	blobSuffix  = ".blob"
)

// damagedError says that a blob file, which has values separate from their keys, is missing, truncated or not what
// was written.
//
// Pebble panics, in goroutines of its own, if it finds a blob file corrupt, because it looks for a table to report.
// So this layer below Pebble checks blob files itself, and lets Pebble see a file that cannot be read.
type damagedError struct {
	name   string
	reason string
}

func (e *damagedError) Error() string { return fmt.Sprintf("%s %s", e.name, e.reason) }

// blobFile is a blob file that is open for reading. Each read of a block is checked.
type blobFile struct {
	vfs.File
	name  string
	end   int64 // of the blocks; the footer follows
	known *damage
}

// openBlob opens a blob file and checks its footer.
func openBlob(disk vfs.FS, path string, known *damage, opts ...vfs.OpenOption) (vfs.File, error) {
	name := disk.PathBase(path)
	damaged := func(reason string) error {
		known.note(name, reason)
		return &damagedError{name, reason}
	}
	f, err := disk.Open(path, opts...)
	if oserror.IsNotExist(err) {
		return nil, damaged("is missing")
	}
	if err != nil {
		return nil, err
	}
	readable, err := sstable.NewSimpleReadable(unclosed{f})
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	reader, err := blob.NewFileReader(context.Background(), readable, blob.FileReaderOptions{})
	if err != nil {
		closeErr := f.Close()
		if !isDamage(err) {
			return nil, errors.Join(err, closeErr)
		}
		return nil, damaged("is cut off or damaged at its end")
	}
	index := reader.IndexHandle()
	return &blobFile{File: f, name: name, end: int64(index.Offset + index.Length + block.TrailerLen), known: known}, nil
}

// unclosed is a file whose Close does nothing, because the reader of its footer does not own it.
type unclosed struct{ vfs.File }

func (unclosed) Close() error { return nil }

// ReadAt reads blocks. A block ends in its kind and its checksum.
func (f *blobFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	if err == nil && off+int64(len(p)) <= f.end {
		err = block.ValidateChecksum(block.ChecksumTypeCRC32c, p, block.Handle{Length: uint64(len(p) - block.TrailerLen)})
	}
	if err == nil || !isDamage(err) {
		return n, err
	}
	damaged := &damagedError{f.name, fmt.Sprintf("is damaged in the block at %d", off)}
	f.known.note(damaged.name, damaged.reason)
	return 0, damaged
}

func isBlob(path string) bool { return strings.HasSuffix(path, blobSuffix) }
