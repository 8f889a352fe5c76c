// Package salvage reads what can be read in the files of a Pebble database. It reads each file by itself, without the
// manifest or a table's index, and skips damaged parts.
package salvage

import (
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Entry is a version of a key, or a deleted span of keys. Its bytes are valid until the visit function returns.
type Entry struct {
	Key []byte
	// End is the first key after a deleted span; nil for a single key.
	End []byte
	// Seq orders the versions of a key: the greatest counts.
	Seq     uint64
	Deleted bool
	// Value is the stored value. If it is in a blob file, Value is nil and Apart is its length.
	Value []byte
	Apart int
}

// Span is a part of a file that is not what was written.
type Span struct{ From, To int }

func (s Span) String() string { return fmt.Sprintf("bytes %d to %d", s.From, s.To) }

// readChunk is how many bytes count as lost if the disk cannot read a part of a file.
const readChunk = 4096

// ReadFile returns a file's content, with zeros for the parts that the disk cannot read.
func ReadFile(fs vfs.FS, path string) (content []byte, err error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	content = make([]byte, info.Size())
	if _, err := io.ReadFull(io.NewSectionReader(f, 0, info.Size()), content); err == nil {
		return content, nil
	}
	for at := 0; at < len(content); at += readChunk {
		chunk := content[at:min(at+readChunk, len(content))]
		if n, err := f.ReadAt(chunk, int64(at)); n < len(chunk) && err != nil {
			clear(chunk)
		}
	}
	return content, nil
}
