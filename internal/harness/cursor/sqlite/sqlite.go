// Package sqlite reads the rows of a plain table from an SQLite database file. It runs nothing that the file
// contains: no SQL, no views, no expressions. Its work and memory are bounded by the size of the file,
// whatever its contents: each page is visited once at most, and all values together have no more bytes than
// the file.
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
	"maps"
)

// Magic is what every database begins with.
const Magic = "SQLite format 3\x00"

// Limits of what is read. Chats have keys of some hundred bytes; SQLite itself allows trees of depth 20.
const (
	// MaxValue is the largest value that is read.
	MaxValue = 32 << 20
	// maxKey is the longest key; rows with a longer one are skipped.
	maxKey = 4 << 10
	// maxSchema is the longest entry of the schema; longer ones are skipped.
	maxSchema = 64 << 10
	maxHeader = 1 << 10
	maxDepth  = 24
)

// DamageError says that the file violates the database format. Rows that were given before are valid.
type DamageError struct{ Reason string }

func (e *DamageError) Error() string { return "the database is damaged: " + e.Reason }

// RefusedError says that the file may be valid, but is not supported.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return e.Reason }

func damaged(format string, args ...any) error {
	return &DamageError{Reason: fmt.Sprintf(format, args...)}
}

// File is an open database. One goroutine may use it.
type File struct {
	in       io.ReaderAt
	pageSize int
	usable   int // bytes of a page, without the reserved ones
	pages    uint32
	text     textEncoding
	log      writeAheadLog
	// visited has a bit for each page that was read since begin.
	visited []uint64
}

// Open reads the header of a database of size bytes. log is the write-ahead log, the file with -wal after its
// name, or nil; its committed changes are read too.
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
		pages += int64(len(f.log.at)) // an upper bound: each page in the log may be a new one
	}
	if pages > 1<<32-2 {
		return nil, damaged("it has more pages than a database can")
	}
	f.pages = uint32(pages)
	var err error
	f.text, err = newTextEncoding(binary.BigEndian.Uint32(header[56:]))
	return f, err
}

// page reads a page. Reading one twice between calls of begin is damage.
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

// begin clears the set of visited pages.
func (f *File) begin() { f.visited = make([]uint64, f.pages/64+1) }

// writeAheadLog locates changed pages that are not in the database file yet.
type writeAheadLog struct {
	in io.ReaderAt
	at map[uint32]int64 // offsets by page
}

const (
	logHeader   = 32
	frameHeader = 24
	logMagic    = 0x377f0682 // plus one if checksums are computed over big-endian words
)

// readLog reads up to the last committed transaction. Frames after it are from older logs, or of a
// transaction that was not committed. As in SQLite, a log whose header is invalid has no transactions.
func readLog(in io.ReaderAt, pageSize int) (writeAheadLog, error) {
	log := writeAheadLog{in: in, at: map[uint32]int64{}}
	header := make([]byte, logHeader)
	if ok, err := readWhole(in, header, 0); !ok || err != nil {
		return log, err
	}
	magic := binary.BigEndian.Uint32(header)
	if magic&^1 != logMagic || binary.BigEndian.Uint32(header[8:]) != uint32(pageSize) {
		return log, nil
	}
	sum := checksum{order: binary.LittleEndian}
	if magic&1 == 1 {
		sum.order = binary.BigEndian
	}
	if sum.add(header[:24]); !sum.is(header[24:]) {
		return log, nil
	}
	pending := map[uint32]int64{}
	frame := make([]byte, frameHeader+pageSize)
	for at := int64(logHeader); ; at += int64(len(frame)) {
		if ok, err := readWhole(in, frame, at); !ok || err != nil {
			return log, err
		}
		sum.add(frame[:8])
		sum.add(frame[frameHeader:])
		if string(frame[8:16]) != string(header[16:24]) || !sum.is(frame[16:]) {
			return log, nil
		}
		pending[binary.BigEndian.Uint32(frame)] = at + frameHeader
		if commit := binary.BigEndian.Uint32(frame[4:]) > 0; commit {
			maps.Copy(log.at, pending)
			clear(pending)
		}
	}
}

func readWhole(in io.ReaderAt, into []byte, at int64) (bool, error) {
	if _, err := in.ReadAt(into, at); errors.Is(err, io.EOF) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("read write-ahead log: %w", err)
	}
	return true, nil
}

// checksum is the running checksum of a log.
type checksum struct {
	order  binary.ByteOrder
	first  uint32
	second uint32
}

func (c *checksum) add(words []byte) {
	for ; len(words) >= 8; words = words[8:] {
		c.first += c.order.Uint32(words) + c.second
		c.second += c.order.Uint32(words[4:]) + c.first
	}
}

func (c *checksum) is(stored []byte) bool {
	return c.first == binary.BigEndian.Uint32(stored) && c.second == binary.BigEndian.Uint32(stored[4:])
}
