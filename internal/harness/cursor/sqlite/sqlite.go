// Package sqlite reads the rows of a plain table out of a database file of SQLite. It
// runs nothing that is in the file: no SQL, no views, no expressions. Its work and
// memory are bounded by the size of the file, whatever the file says: each page is
// visited once at most, and the values that are given have no more bytes than the file.
//
// The format is https://www.sqlite.org/fileformat2.html.
package sqlite

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Magic begins every database.
const Magic = "SQLite format 3\x00"

// What a file may ask for. Chats have keys of some hundred bytes; SQLite's own limit of
// a tree's depth is 20.
const (
	// MaxValue is the largest value that is read.
	MaxValue = 32 << 20
	// maxKey is the longest key that is looked at; rows with a longer one are passed.
	maxKey = 4 << 10
	// maxSchema is the longest entry of the schema that is looked at.
	maxSchema = 64 << 10
	maxHeader = 1 << 10
	maxDepth  = 24
)

// DamageError says that the file is not what a database has to be. What was given
// before it is sound.
type DamageError struct{ Reason string }

func (e *DamageError) Error() string { return "the database is damaged: " + e.Reason }

// RefusedError says that the file may be sound and is not read.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return e.Reason }

func damaged(format string, args ...any) error {
	return &DamageError{Reason: fmt.Sprintf(format, args...)}
}

// File is a database.
type File struct {
	in       io.ReaderAt
	pageSize int
	usable   int // of a page
	pages    uint32
	text     textEncoding
	log      writeAheadLog
	// visited has a bit for each page.
	visited []uint64
}

// Open reads the header of a database of so many bytes. log is what is in the file
// with -wal after its name, or nil; changes that are committed there are read.
func Open(in io.ReaderAt, size int64, log io.ReaderAt) (*File, error) {
	f := &File{in: in}
	header := make([]byte, 100)
	if _, err := in.ReadAt(header, 0); errors.Is(err, io.EOF) {
		return nil, damaged("it ends in its header")
	} else if err != nil {
		return nil, fmt.Errorf("read database: %w", err)
	}
	if !bytes.HasPrefix(header, []byte(Magic)) {
		return nil, damaged("it does not begin as a database does")
	}
	f.pageSize = int(binary.BigEndian.Uint16(header[16:]))
	if f.pageSize == 1 {
		f.pageSize = 64 << 10
	}
	if f.pageSize < 512 || f.pageSize&(f.pageSize-1) != 0 {
		return nil, damaged("its pages have %d bytes", f.pageSize)
	}
	if f.usable = f.pageSize - int(header[20]); f.usable < 480 {
		return nil, damaged("%d bytes of its pages are reserved", header[20])
	}
	if header[18] > 2 || header[19] > 2 {
		return nil, &RefusedError{Reason: "the database is of a version of SQLite that is not known"}
	}
	pages := size / int64(f.pageSize)
	if log != nil {
		var err error
		if f.log, err = readLog(log, f.pageSize); err != nil {
			return nil, err
		}
		pages += int64(len(f.log.at)) // at most: the log has each page that is new
	}
	if pages > 1<<32-2 {
		return nil, damaged("it has more pages than a database can")
	}
	f.pages = uint32(pages)
	var err error
	f.text, err = newTextEncoding(binary.BigEndian.Uint32(header[56:]))
	return f, err
}

// page reads a page that was not visited before.
func (f *File) page(ctx context.Context, n uint32) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if n == 0 || n > f.pages {
		return nil, damaged("it has %d pages, and one of them leads to page %d", f.pages, n)
	}
	word, bit := n/64, uint64(1)<<(n%64)
	if f.visited[word]&bit != 0 {
		return nil, damaged("two of its pages lead to page %d", n)
	}
	f.visited[word] |= bit
	page := make([]byte, f.pageSize)
	in, at := f.in, int64(n-1)*int64(f.pageSize)
	if logged, ok := f.log.at[n]; ok {
		in, at = f.log.in, logged
	}
	if _, err := in.ReadAt(page, at); errors.Is(err, io.EOF) {
		return nil, damaged("page %d is cut off", n)
	} else if err != nil {
		return nil, fmt.Errorf("read database: %w", err)
	}
	return page, nil
}

// begin forgets what was visited.
func (f *File) begin() { f.visited = make([]uint64, f.pages/64+1) }
