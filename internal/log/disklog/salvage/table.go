package salvage

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/blob"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/sstable/colblk"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// tableFooter is the size of a table's footer.
const tableFooter = 61

// Gap is a range of keys that a table has lost: those between After and Before, or from After to the table's end.
type Gap struct{ After, Before []byte }

// Table visits the entries of a table, in the order of the file.
func Table(content []byte, visit func(Entry) error) (lost []Span, gaps []Gap, err error) {
	layout, known := layoutOf(content)
	var begins []int
	if known {
		for _, h := range slices.Concat(layout.Index, []block.Handle{layout.TopIndex, layout.RangeDel, layout.Properties, layout.MetaIndex, layout.BlobReferenceIndex}) {
			if h.Length > 0 {
				begins = append(begins, int(h.Offset))
			}
		}
		for _, filter := range layout.Filter {
			begins = append(begins, int(filter.Offset))
		}
		for _, data := range layout.Data {
			begins = append(begins, int(data.Offset))
		}
	}
	var after []byte // the last key so far
	at := 0          // the offset where its block ends
	ended := false   // a block without keys was found: no block with keys follows
	gap := func(from, to int, before []byte) {
		hasData := func(h block.HandleWithProperties) bool { return int(h.Offset) >= from && int(h.Offset) < to }
		if from < to && (!known || slices.ContainsFunc(layout.Data, hasData)) {
			gaps = append(gaps, Gap{after, before})
		}
	}
	lost, err = eachBlock(content, tableFooter, begins, func(span Span, data []byte) error {
		first := true
		err := tableBlock(data, func(e Entry) error {
			if e.End == nil {
				if first {
					gap(at, span.From, bytes.Clone(e.Key))
				}
				first, after = false, e.Key
			}
			return visit(e)
		})
		if !first {
			at = span.To
		}
		ended = first
		return err
	})
	switch {
	case !known && !ended:
		gaps = append(gaps, Gap{after, nil}) // the table may be truncated anywhere
	case len(lost) > 0 && lost[len(lost)-1].From >= at:
		gap(at, len(content), nil)
	}
	if footer := len(content) - tableFooter; !known && len(lost) == 0 {
		lost = append(lost, Span{max(footer, 0), len(content)})
	}
	return lost, gaps, err
}

// layoutOf returns where the blocks of a table are, if its footer and its index can be read.
func layoutOf(content []byte) (*sstable.Layout, bool) {
	fs := vfs.NewMem()
	f, err := fs.Create("table", vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, false
	}
	if _, err := f.Write(slices.Clone(content)); err != nil { // a file may change its argument
		return nil, false
	}
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return nil, false
	}
	schema := colblk.DefaultKeySchema(pebble.DefaultComparer, 16)
	r, err := sstable.NewReader(context.Background(), readable, sstable.ReaderOptions{KeySchemas: sstable.MakeKeySchemas(&schema)})
	if err != nil {
		return nil, false
	}
	defer r.Close()
	l, err := r.Layout()
	return l, err == nil
}

const (
	prefixColumn = iota
	suffixColumn
	trailerColumn
	_ // whether the prefix differs from the one before
	valueColumn
	apartColumn // whether the value is a handle
)

// tableBlock visits the entries of a block. Blocks of an index or a filter have none.
func tableBlock(data []byte, visit func(Entry) error) (err error) {
	var entries []Entry
	if d, ok := columns(data, 4, colblk.DataTypePrefixBytes, colblk.DataTypeBytes, colblk.DataTypeUint, colblk.DataTypeBool,
		colblk.DataTypeBytes, colblk.DataTypeBool, colblk.DataTypeBool); ok {
		entries, err = points(&d)
	} else if d, ok := columns(data, 4, colblk.DataTypeBytes, colblk.DataTypeUint, colblk.DataTypeUint, colblk.DataTypeBytes, colblk.DataTypeBytes); ok {
		entries, err = deletedSpans(&d)
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := visit(e); err != nil {
			return err
		}
	}
	return nil
}

func points(d *colblk.BlockDecoder) (entries []Entry, err error) {
	defer panicked(&err)
	prefixes, suffixes := d.PrefixBytes(prefixColumn), d.RawBytes(suffixColumn)
	trailers, values, apart := d.Uints(trailerColumn), d.RawBytes(valueColumn), d.Bitmap(apartColumn)
	for row := range d.Rows() {
		seq, kind := trailerOf(trailers.At(row))
		e := Entry{Key: slices.Concat(prefixes.SharedPrefix(), prefixes.RowBundlePrefix(row), prefixes.RowSuffix(row), suffixes.At(row)), Seq: seq}
		switch kind {
		case pebble.InternalKeyKindSet, pebble.InternalKeyKindSetWithDelete:
			e.Value = values.At(row)
			if apart.At(row) {
				if !block.ValuePrefix(e.Value[0]).IsBlobValueHandle() {
					continue // no version of contextd writes such entries
				}
				handle, _ := blob.DecodeInlineHandlePreface(slices.Concat(e.Value[1:], make([]byte, 8)))
				e.Value, e.Apart = nil, int(handle.ValueLen)
			}
		default:
			e.Deleted = true
		}
		entries = append(entries, e)
	}
	return entries, nil
}

func trailerOf(trailer uint64) (seq uint64, kind pebble.InternalKeyKind) {
	return trailer >> 8, pebble.InternalKeyKind(trailer & 0xff)
}

func deletedSpans(d *colblk.BlockDecoder) (entries []Entry, err error) {
	defer panicked(&err)
	bounds := int(binary.LittleEndian.Uint32(d.Data()))
	keys := colblk.DecodeColumn(d, 0, bounds, colblk.DataTypeBytes, colblk.DecodeRawBytes)
	firsts := colblk.DecodeColumn(d, 1, bounds, colblk.DataTypeUint, colblk.DecodeUnsafeUints)
	trailers := d.Uints(2)
	for i := range bounds - 1 {
		for row := firsts.At(i); row < firsts.At(i+1); row++ {
			if seq, kind := trailerOf(trailers.At(int(row))); kind == pebble.InternalKeyKindRangeDelete {
				entries = append(entries, Entry{Key: slices.Clone(keys.At(i)), End: slices.Clone(keys.At(i + 1)), Seq: seq, Deleted: true})
			}
		}
	}
	return entries, nil
}
