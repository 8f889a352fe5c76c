package salvage

import (
	"encoding/binary"
	"hash/crc32"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
)

// A file of the write-ahead log is pages of chunks, of which one or more make a record.
const (
	logPage = 32 << 10
	// A chunk begins with its checksum, length, kind and the file's number, and in newer files also with the synced
	// length.
	shortChunk, longChunk = 11, 19
)

// The kinds of chunks: each of them in short form, long form.
const (
	wholeRecord = iota
	firstOfRecord
	middleOfRecord
	lastOfRecord
)

// Log visits the entries of a file of the write-ahead log. After damage it goes on with the next page. Bytes after
// the last chunk are the rest of an older, recycled file, or were never acknowledged.
func Log(content []byte, number uint64, visit func(Entry) error) (lost []Span, err error) {
	var record []byte
	whole := false // record begins at the beginning of one
	var unread []Span
	for page := 0; page < len(content); page += logPage {
		end := min(page+logPage, len(content))
		for at := page; at+shortChunk <= end; {
			kind, data, size := chunkAt(content[at:end], uint32(number))
			if size == 0 {
				if !blank(content[at:end]) {
					unread = append(unread, Span{at, end})
					whole = false
				}
				if goesOn(content[at:end], uint32(number)) {
					lost, unread = append(lost, unread...), nil
				}
				break
			}
			at += size
			lost, unread = append(lost, unread...), nil
			switch kind {
			case wholeRecord, firstOfRecord:
				record, whole = append(record[:0], data...), true
			default:
				record = append(record, data...)
			}
			if whole && (kind == wholeRecord || kind == lastOfRecord) {
				if err := batch(record, visit); err != nil {
					return lost, err
				}
				whole = false
			}
		}
	}
	return lost, nil
}

// goesOn reports whether the content after damage has another chunk of the log. That is only a hint, because a stored
// text may look like a chunk.
func goesOn(content []byte, number uint32) bool {
	for at := 1; at+shortChunk <= len(content); at++ {
		if _, _, size := chunkAt(content[at:], number); size > 0 {
			return true
		}
	}
	return false
}

// chunkAt returns a chunk and its size; 0 if there is none of the log.
func chunkAt(content []byte, number uint32) (kind int, data []byte, size int) {
	header, code := shortChunk, int(content[6])
	switch {
	case code >= 9 && code <= 12:
		header, kind = longChunk, code-9
	case code >= 5 && code <= 8:
		kind = code - 5
	default:
		return 0, nil, 0
	}
	size = header + int(binary.LittleEndian.Uint16(content[4:]))
	if size > len(content) || binary.LittleEndian.Uint32(content[7:]) != number {
		return 0, nil, 0
	}
	c := crc32.Checksum(content[6:size], castagnoli)
	if binary.LittleEndian.Uint32(content) != (c>>15|c<<17)+checksumDelta {
		return 0, nil, 0
	}
	return kind, content[header:size], size
}

func blank(content []byte) bool {
	return !slices.ContainsFunc(content, func(b byte) bool { return b != 0 })
}

// batch visits the entries of a batch, which have consecutive seqs.
func batch(record []byte, visit func(Entry) error) error {
	header, ok := batchrepr.ReadHeader(record)
	if !ok {
		return nil
	}
	seq := uint64(header.SeqNum)
	for r := batchrepr.Read(record); ; {
		kind, key, value, ok, err := r.Next()
		if !ok || err != nil {
			return nil //nolint:nilerr // a whole record that is no batch has no entries
		}
		e := Entry{Key: key, Seq: seq}
		switch kind {
		case pebble.InternalKeyKindSet:
			e.Value = value
		case pebble.InternalKeyKindDelete, pebble.InternalKeyKindSingleDelete, pebble.InternalKeyKindDeleteSized:
			e.Deleted = true
		case pebble.InternalKeyKindRangeDelete:
			e.Deleted, e.End = true, value
		case pebble.InternalKeyKindLogData:
			continue // takes no seq
		default:
			seq++
			continue
		}
		if err := visit(e); err != nil {
			return err
		}
		seq++
	}
}
