package sqlite

import (
	"context"
	"encoding/binary"
)

// The kinds of pages in the tree of a table.
const (
	interiorPage = 5
	leafPage     = 13
)

// walk calls each with the rows of the table whose root page is root, in the order of the row ids, until it
// returns false.
func (f *File) walk(ctx context.Context, root uint32, each func(*payload) (bool, error)) error {
	f.begin()
	_, err := f.subtree(ctx, root, 0, each)
	return err
}

// treePage is a page of a table's tree.
type treePage struct {
	number   uint32
	bytes    []byte
	interior bool
	// cells is the number of cells; pointers is the offset of the array with their offsets.
	cells, pointers int
	// right is the last child of an interior page.
	right uint32
}

// treePage reads a page at this depth of a tree, and its header.
func (f *File) treePage(ctx context.Context, number uint32, depth int) (p treePage, err error) {
	if number == 1 && depth > 0 {
		return p, damaged("one of its pages leads to the first")
	}
	if depth > maxDepth {
		return p, damaged("a table is more than %d pages deep", maxDepth)
	}
	p.number = number
	if p.bytes, err = f.page(ctx, number); err != nil {
		return p, err
	}
	at := 0
	if number == 1 {
		at = 100 // after the header of the file
	}
	switch kind := p.bytes[at]; kind {
	case interiorPage:
		p.interior, p.pointers, p.right = true, at+12, binary.BigEndian.Uint32(p.bytes[at+8:])
	case leafPage:
		p.pointers = at + 8
	default:
		return p, damaged("page %d is of kind %d, which is none of a table's", number, kind)
	}
	p.cells = int(binary.BigEndian.Uint16(p.bytes[at+3:]))
	if p.pointers+2*p.cells > f.usable {
		return p, damaged("page %d has %d rows, for which it has no room", number, p.cells)
	}
	return p, nil
}

// cell returns the bytes from the beginning of cell i to the end of the page.
func (f *File) cell(p treePage, i int) ([]byte, error) {
	at := int(binary.BigEndian.Uint16(p.bytes[p.pointers+2*i:]))
	if at < p.pointers+2*p.cells || at >= f.usable {
		return nil, damaged("a row of page %d is not where rows are", p.number)
	}
	return p.bytes[at:f.usable], nil
}

func (f *File) subtree(ctx context.Context, number uint32, depth int, each func(*payload) (bool, error)) (bool, error) {
	p, err := f.treePage(ctx, number, depth)
	if err != nil {
		return false, err
	}
	if !p.interior {
		return f.leaf(ctx, p, each)
	}
	for i := range p.cells {
		cell, err := f.cell(p, i)
		if err != nil {
			return false, err
		}
		if len(cell) < 4 {
			return false, damaged("page %d is cut off", number)
		}
		if more, err := f.subtree(ctx, binary.BigEndian.Uint32(cell), depth+1, each); err != nil || !more {
			return false, err
		}
	}
	return f.subtree(ctx, p.right, depth+1, each)
}

// leaf calls each with the rows of a leaf page.
func (f *File) leaf(ctx context.Context, p treePage, each func(*payload) (bool, error)) (bool, error) {
	left := f.usable // bytes for further rows: a file could otherwise give the same bytes many times
	for i := range p.cells {
		cell, err := f.cell(p, i)
		if err != nil {
			return false, err
		}
		row, length, err := f.leafRow(ctx, cell)
		if err != nil {
			return false, err
		}
		if left -= length; left < 0 {
			return false, damaged("rows of page %d have the same bytes", p.number)
		}
		if more, err := each(row); err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

// leafRow returns the row at the beginning of a cell, and how many bytes of the page it takes.
func (f *File) leafRow(ctx context.Context, cell []byte) (*payload, int, error) {
	size, n := varint(cell)
	_, m := varint(cell[n:]) // the row's id
	if n == 0 || m == 0 {
		return nil, 0, damaged("a row is cut off")
	}
	body := cell[n+m:]
	local, spilled := f.local(size)
	need := local
	if spilled {
		need += 4
	}
	if need > len(body) {
		return nil, 0, damaged("a row is cut off")
	}
	row := &payload{ctx: ctx, file: f, here: body[:local], left: size}
	if spilled {
		row.next = binary.BigEndian.Uint32(body[local:])
	}
	return row, n + m + need, nil
}

// local returns how many bytes of a row of this size are on the leaf page, and whether the rest is on
// overflow pages.
func (f *File) local(size uint64) (int, bool) {
	most := f.usable - 35
	if size <= uint64(most) {
		return int(size), false
	}
	least := (f.usable-12)*32/255 - 23
	if n := least + int((size-uint64(least))%uint64(f.usable-4)); n <= most {
		return n, true
	}
	return least, true
}

// payload reads the content of a row in order. Overflow pages are read only as far as needed.
type payload struct {
	ctx  context.Context
	file *File
	here []byte
	next uint32 // the next overflow page; 0 if there is none
	left uint64
}

// read returns the next n bytes. The caller must have limited n.
func (p *payload) read(n uint64) ([]byte, error) {
	if n > p.left {
		return nil, damaged("a value is longer than its row")
	}
	p.left -= n
	if n <= uint64(len(p.here)) {
		out := p.here[:n]
		p.here = p.here[n:]
		return out, nil
	}
	var out []byte
	for {
		piece := p.here[:min(n, uint64(len(p.here)))]
		out, p.here, n = append(out, piece...), p.here[len(piece):], n-uint64(len(piece))
		if n == 0 {
			return out, nil
		}
		if p.next == 0 {
			return nil, damaged("a value is cut off")
		}
		page, err := p.file.page(p.ctx, p.next)
		if err != nil {
			return nil, err
		}
		p.next, p.here = binary.BigEndian.Uint32(page), page[4:p.file.usable]
	}
}

// varint decodes a number of one to nine bytes; length is 0 if it is cut off.
func varint(b []byte) (value uint64, length int) {
	for i := range min(len(b), 9) {
		if i == 8 {
			return value<<8 | uint64(b[8]), 9
		}
		value = value<<7 | uint64(b[i]&0x7f)
		if b[i] < 0x80 {
			return value, i + 1
		}
	}
	return 0, 0
}
