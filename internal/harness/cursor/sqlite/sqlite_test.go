package sqlite_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/harness/cursor/sqlite"
)

const table = "cursorDiskKV"

// databases are the files that testdata/make.py generates, by name.
func databases(tb testing.TB, pattern string) map[string][]byte {
	tb.Helper()
	names, err := filepath.Glob("testdata/" + pattern)
	if err != nil || len(names) < 7 {
		tb.Fatalf("%d databases, %v", len(names), err)
	}
	out := map[string][]byte{}
	for _, name := range names {
		out[filepath.Base(name)] = read(tb, name)
	}
	return out
}

func read(tb testing.TB, name string) []byte {
	tb.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// rows reads the chats of a database, and the total size of their values.
func rows(ctx context.Context, data, log []byte) (out []sqlite.Row, size int, err error) {
	var wal io.ReaderAt
	if log != nil {
		wal = bytes.NewReader(log)
	}
	f, err := sqlite.Open(bytes.NewReader(data), int64(len(data)), wal)
	if err != nil {
		return nil, 0, err
	}
	for row, err := range f.Rows(ctx, table, "bubbleId:") {
		if err != nil {
			return out, size, err
		}
		out, size = append(out, row), size+len(row.Value)
	}
	return out, size, nil
}

// check compares rows with those that make.py writes.
func check(t *testing.T, got []sqlite.Row) {
	t.Helper()
	const want = 24
	if len(got) != want {
		t.Fatalf("%d rows, want %d", len(got), want)
	}
	for i, row := range got {
		value := fmt.Sprintf(`{"n":%d,"text":%q}`, i, strings.Repeat("a\u00e9\U0001f600", i*i%150))
		if key := fmt.Sprintf("bubbleId:c:%03d", i); row.Key != key || string(row.Value) != value {
			t.Errorf("row %d is %q: %.80q, want %q: %.80q", i, row.Key, row.Value, key, value)
		}
	}
}

// TestPlainTables covers page sizes, reserved bytes, encodings, long values, free pages and the pages of
// automatic vacuum.
func TestPlainTables(t *testing.T) {
	for name, data := range databases(t, "*.plain.db") {
		t.Run(name, func(t *testing.T) {
			var log []byte
			if strings.HasPrefix(name, "wal") {
				log = read(t, "testdata/wal.plain.db-wal")
			}
			got, _, err := rows(t.Context(), data, log)
			if err != nil {
				t.Fatal(err)
			}
			check(t, got)
		})
	}
}

// TestWriteAheadLog: a transaction counts if it is complete, and the log of another database is ignored.
func TestWriteAheadLog(t *testing.T) {
	data, log := read(t, "testdata/wal.plain.db"), read(t, "testdata/wal.plain.db-wal")
	without, _, err := rows(t.Context(), data, nil)
	if err != nil || len(without) != 12 || string(without[3].Value) != "{}" {
		t.Fatalf("without its log %d rows, %v", len(without), err)
	}
	last := 0
	for n := 0; n <= len(log); n += 97 {
		got, _, err := rows(t.Context(), data, log[:n])
		if err != nil {
			t.Fatalf("a log of %d bytes: %v", n, err)
		}
		last = max(last, len(got))
	}
	if last < 20 {
		t.Errorf("%d rows at most", last)
	}
	for _, at := range []int{0, 9, 17, 25, 33, 57, len(log) / 2} {
		changed := bytes.Clone(log)
		changed[at] ^= 0x40
		if _, _, err := rows(t.Context(), data, changed); err != nil {
			t.Errorf("changed at %d: %v", at, err)
		}
	}
}

// TestNoPlainTable: views and tables with computed columns are refused with their name, and no rows are read.
func TestNoPlainTable(t *testing.T) {
	for name, data := range databases(t, "*.refused.db") {
		t.Run(name, func(t *testing.T) {
			got, _, err := rows(t.Context(), data, nil)
			var refused *sqlite.RefusedError
			if !errors.As(err, &refused) || len(got) > 0 || !strings.Contains(err.Error(), table) {
				t.Errorf("%d rows and %v", len(got), err)
			}
		})
	}
}

// TestHostileDatabases: each file ends with a *DamageError, and gives no more bytes than it has.
func TestHostileDatabases(t *testing.T) {
	const page = 512
	sound := read(t, "testdata/page-512.plain.db")
	leaf, interior := pageOf(t, sound, page, 13), pageOf(t, sound, page, 5)
	tests := map[string]func(data []byte) []byte{
		"a page leads to itself": func(data []byte) []byte {
			binary.BigEndian.PutUint32(data[interior+8:], uint32(interior/page+1))
			return data
		},
		"a page leads to the first": func(data []byte) []byte {
			binary.BigEndian.PutUint32(data[interior+8:], 1)
			return data
		},
		"a page leads out of the file": func(data []byte) []byte {
			binary.BigEndian.PutUint32(data[interior+8:], 1<<31)
			return data
		},
		"all rows are the first": func(data []byte) []byte {
			cell := binary.BigEndian.Uint16(data[leaf+8:])
			binary.BigEndian.PutUint16(data[leaf+3:], 180)
			for i := range 180 {
				binary.BigEndian.PutUint16(data[leaf+8+2*i:], max(cell, 400))
			}
			return data
		},
		"more rows than the page has room for": func(data []byte) []byte {
			binary.BigEndian.PutUint16(data[leaf+3:], 0xffff)
			return data
		},
		"a row in the head of its page": func(data []byte) []byte {
			binary.BigEndian.PutUint16(data[leaf+8:], 3)
			return data
		},
		"a row behind its page": func(data []byte) []byte {
			binary.BigEndian.PutUint16(data[leaf+8:], 511)
			return data
		},
		"pages of no bytes":     func(data []byte) []byte { return with(data, 16, 0, 0) },
		"pages of 300 bytes":    func(data []byte) []byte { return with(data, 16, 1, 44) },
		"everything reserved":   func(data []byte) []byte { return with(data, 20, 200) },
		"no encoding":           func(data []byte) []byte { return with(data, 56, 0, 0, 0, 9) },
		"no magic":              func(data []byte) []byte { return with(data, 0, 'X') },
		"cut in its header":     func(data []byte) []byte { return data[:60] },
		"cut behind its header": func(data []byte) []byte { return data[:100] },
		"cut in its tables":     func(data []byte) []byte { return data[:len(data)-3*page] },
		"a tree as deep as the file": func(data []byte) []byte {
			return chain(data[:4*page], 4000)
		},
		"long values in a circle": func(data []byte) []byte {
			for at := page; at < len(data); at += page {
				if data[at] == 0 { // a page of a long value leads to the next one
					binary.BigEndian.PutUint32(data[at:], uint32(at/page+1))
				}
			}
			return data
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			data := change(bytes.Clone(sound))
			_, size, err := rows(t.Context(), data, nil)
			var damage *sqlite.DamageError
			if !errors.As(err, &damage) || size > len(data) {
				t.Errorf("%d bytes out of %d, and %v", size, len(data), err)
			}
		})
	}
}

// pageOf is the offset of the last page of the kind that belongs to the chats' table.
func pageOf(t *testing.T, data []byte, size int, kind byte) int {
	t.Helper()
	for at := len(data) - size; at > 0; at -= size {
		if data[at] == kind && (kind == 5 || bytes.Contains(data[at:at+size], []byte("bubbleId"))) {
			return at
		}
	}
	t.Fatalf("no page of kind %d", kind)
	return 0
}

func with(data []byte, at int, b ...byte) []byte {
	copy(data[at:], b)
	return data
}

// chain makes a database whose table is a tree with one child on each page. The pages before the table's root
// are kept.
func chain(data []byte, depth int) []byte {
	const page = 512
	root := 4 // the second table; its key's index and the first table are before it
	data = data[:(root-1)*page]
	for i := range depth {
		p := make([]byte, page)
		p[0] = 5
		binary.BigEndian.PutUint32(p[8:], uint32(root+i+1))
		data = append(data, p...)
	}
	return data
}

// TestEndsWithItsContext: reading stops at the next page once the context is cancelled.
func TestEndsWithItsContext(t *testing.T) {
	data := read(t, "testdata/page-512.plain.db")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f, err := sqlite.Open(bytes.NewReader(data), int64(len(data)), nil)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err = range f.Rows(ctx, table, "bubbleId:") {
		if err == nil {
			n++
			cancel()
		}
	}
	if !errors.Is(err, context.Canceled) || n == 0 || n >= 24 {
		t.Errorf("%d rows, then %v", n, err)
	}
}

// TestLongValue: a value over the limit is refused before it is read.
func TestLongValue(t *testing.T) {
	data := bytes.Clone(read(t, "testdata/page-512.plain.db"))
	leaf := pageOf(t, data, 512, 13)
	const size = 39 + 132106*508 // of the row: 39 bytes of it are on its page
	row := append(varint(size), 1, 6, 13+2*10)
	row = append(append(row, varint(12+2*(sqlite.MaxValue+1))...), "bubbleId:x"...)
	binary.BigEndian.PutUint16(data[leaf+3:], 1)
	binary.BigEndian.PutUint16(data[leaf+8:], 460)
	copy(data[leaf+460:leaf+512], append(row, make([]byte, 52-len(row))...))
	_, _, err := rows(t.Context(), data, nil)
	var refused *sqlite.RefusedError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "33554433 bytes; the limit is 33554432") {
		t.Error(err)
	}
}

// varint encodes a number in four bytes.
func varint(n uint32) []byte {
	return []byte{0x80 | byte(n>>21), 0x80 | byte(n>>14), 0x80 | byte(n>>7), byte(n & 0x7f)}
}

// FuzzRows: for any bytes there is no panic, and the output is bounded by the input.
func FuzzRows(f *testing.F) {
	for _, data := range databases(f, "*.db") {
		f.Add(data, []byte(nil))
	}
	f.Add(read(f, "testdata/wal.plain.db"), read(f, "testdata/wal.plain.db-wal"))
	f.Fuzz(bounded)
}

func bounded(t *testing.T, data, log []byte) {
	if !bytes.HasPrefix(data, []byte(sqlite.Magic)) {
		data = append([]byte(sqlite.Magic), data...)
	}
	got, size, err := rows(t.Context(), data, log)
	var damage *sqlite.DamageError
	var refused *sqlite.RefusedError
	if err != nil && !errors.As(err, &damage) && !errors.As(err, &refused) {
		t.Fatal(err)
	}
	// Two bytes of UTF-16 may be three of UTF-8, and a number of one byte has three digits.
	if whole := len(data) + len(log); size > 3*whole || len(got) > whole {
		t.Errorf("%d rows with %d bytes out of %d", len(got), size, whole)
	}
}

// TestChangedBytes changes each database, one byte at a time.
func TestChangedBytes(t *testing.T) {
	for name, data := range databases(t, "*.plain.db") {
		if len(data) > 20<<10 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			for at := 16; at < len(data); at += 1 + at/200 {
				for _, b := range []byte{0, 5, 0x7f, 0xff} {
					changed := bytes.Clone(data)
					changed[at] = b
					bounded(t, changed, nil)
				}
			}
		})
	}
}
