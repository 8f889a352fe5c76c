package salvage

import (
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2/sstable/colblk"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// valuesFooter is the size of a blob file's footer.
const valuesFooter = 38

// Values finds values in blob files. Only the manifest and a blob file's index know which file and block a table's
// handle refers to. Without them a value is identified by its length, and by a test of the caller.
type Values struct {
	fs     vfs.FS
	blocks []blockOfValues
	// places lists, by length, the places of the values of that length, in the order of files and blocks. There may
	// be millions.
	places map[int][]place
	// next is, by length, the place after the value found last: usually the next lookup finds its value there.
	next map[int]int

	// open is the block that was read last, plus 1, with its values.
	open   uint32
	values colblk.RawBytes
}

type blockOfValues struct {
	path string
	at   Span
}

type place struct{ block, row uint32 }

// NewValues returns an empty set.
func NewValues(fs vfs.FS) *Values {
	return &Values{fs: fs, places: map[int][]place{}, next: map[int]int{}}
}

// Add indexes the values of a file by their lengths.
func (v *Values) Add(path string) (lost []Span, err error) {
	content, err := ReadFile(v.fs, path)
	if err != nil {
		return nil, err
	}
	known, whole := valuesIndex(content)
	lost, err = eachBlock(content, valuesFooter, known, func(at Span, data []byte) error {
		values, rows, err := valuesOf(data)
		if rows > 0 {
			v.blocks = append(v.blocks, blockOfValues{path, at})
		}
		for row := range rows {
			length := len(values.At(row))
			v.places[length] = append(v.places[length], place{uint32(len(v.blocks) - 1), uint32(row)})
		}
		return err
	})
	if end := len(content) - valuesFooter; !whole && len(lost) == 0 {
		lost = append(lost, Span{max(end, 0), len(content)})
	}
	return lost, err
}

// Find returns the first value of a length for which fits is true, or nil.
func (v *Values) Find(length int, fits func([]byte) bool) (found []byte, err error) {
	places := v.places[length]
	from := v.next[length]
	for i := range places {
		at := (from + i) % len(places)
		value, err := v.read(places[at])
		if err != nil {
			return nil, err
		}
		if fits(value) {
			v.next[length] = at + 1
			return value, nil
		}
	}
	return nil, nil
}

func (v *Values) read(p place) ([]byte, error) {
	if v.open != p.block+1 {
		in := v.blocks[p.block]
		f, err := v.fs.Open(in.path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		stored := make([]byte, in.at.To-in.at.From)
		if _, err := f.ReadAt(stored, int64(in.at.From)); err != nil {
			return nil, fmt.Errorf("read %s again: %w", in.path, err)
		}
		data, err := decompress(stored)
		if err != nil {
			return nil, err
		}
		if v.values, _, err = valuesOf(data); err != nil {
			return nil, err
		}
		v.open = p.block + 1
	}
	return v.values.At(int(p.row)), nil
}

// valuesOf returns the values of a block. Blocks of the index have none.
func valuesOf(data []byte) (values colblk.RawBytes, rows int, err error) {
	defer panicked(&err)
	if d, ok := columns(data, 0, colblk.DataTypeBytes); ok {
		values, rows = d.RawBytes(0), d.Rows()
	}
	return values, rows, nil
}

// valuesIndex returns the offsets of a file's blocks, if its footer and its index can be read.
func valuesIndex(content []byte) (begins []int, whole bool) {
	if len(content) < valuesFooter {
		return nil, false
	}
	footer := content[len(content)-valuesFooter:]
	at := binary.LittleEndian.Uint64(footer[4:])
	if at > uint64(len(content)-valuesFooter) {
		return nil, false
	}
	size := blockAt(content[at:len(content)-valuesFooter], len(content))
	if size == 0 {
		return nil, false
	}
	data, err := decompress(content[at : int(at)+size])
	if err != nil {
		return nil, false
	}
	defer func() { whole = recover() == nil && begins != nil }()
	d, ok := columns(data, 4, colblk.DataTypeUint, colblk.DataTypeUint)
	if !ok {
		return nil, false
	}
	offsets := colblk.DecodeColumn(&d, 1, d.Rows()+1, colblk.DataTypeUint, colblk.DecodeUnsafeUints)
	begins = []int{int(at)}
	for i := range d.Rows() {
		begins = append(begins, int(offsets.At(i)))
	}
	return begins, true
}
