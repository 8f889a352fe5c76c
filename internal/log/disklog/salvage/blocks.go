package salvage

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/sstable/colblk"
)

const (
	// searchSteps bounds the search for the next intact block after damage, and searchBlock the size of a block that
	// is found by search.
	searchSteps = 1 << 30
	searchBlock = 64 << 10
)

// checksumDelta is what Pebble adds to the rotated CRC-32C.
const checksumDelta = 0xa282ead8

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// blockAt returns the length of the block that begins the content, its trailer included; 0 if there
// is none of up to limit bytes. A block ends in its kind of compression and a checksum.
func blockAt(content []byte, limit int) int {
	sum := ^uint32(0)
	for end := 1; end+4 <= min(len(content), limit); end++ {
		sum = castagnoli[byte(sum)^content[end-1]] ^ sum>>8
		c := ^sum
		if binary.LittleEndian.Uint32(content[end:]) == (c>>15|c<<17)+checksumDelta {
			return end + 4
		}
	}
	return 0
}

// eachBlock visits the intact blocks of a file, decompressed. Blocks follow one another without a gap up to the
// footer, so it needs no index. After damage it goes on at the next of the known block offsets, or where it finds a
// block.
func eachBlock(content []byte, footer int, known []int, visit func(at Span, data []byte) error) (lost []Span, err error) {
	end := max(len(content)-footer, 0)
	slices.Sort(known)
	for at := 0; at < end; {
		size := blockAt(content[at:end], end-at)
		if size == 0 {
			next := nextBlock(content[:end], at, known)
			lost = append(lost, Span{at, next})
			at = next
			continue
		}
		data, err := decompress(content[at : at+size])
		if err != nil {
			lost = append(lost, Span{at, at + size})
		} else if err := visit(Span{at, at + size}, data); err != nil {
			return lost, err
		}
		at += size
	}
	return lost, nil
}

// nextBlock returns the offset of the next block after a damaged one, or the end of the content.
func nextBlock(content []byte, damaged int, known []int) int {
	for _, at := range known {
		if at > damaged && at < len(content) {
			return at
		}
	}
	if len(known) > 0 {
		return len(content)
	}
	steps := 0
	for at := damaged + 1; at < len(content) && steps < searchSteps; at++ {
		if blockAt(content[at:], searchBlock) > 0 {
			return at
		}
		steps += min(searchBlock, len(content)-at)
	}
	return len(content)
}

func decompress(stored []byte) ([]byte, error) {
	stored = stored[:len(stored)-block.TrailerLen+1]
	kind := block.CompressionIndicator(stored[len(stored)-1])
	stored = stored[:len(stored)-1]
	switch kind {
	case block.NoCompressionIndicator:
		// A copy, because columns must be aligned.
		return slices.Clone(stored), nil
	case block.SnappyCompressionIndicator, block.ZstdCompressionIndicator, block.MinLZCompressionIndicator:
	default:
		return nil, fmt.Errorf("compression %d is not known", kind)
	}
	size, err := block.DecompressedLen(kind, stored)
	if err != nil {
		return nil, err
	}
	data := make([]byte, size)
	return data, block.DecompressInto(kind, stored, data)
}

// columns decodes a block if its columns have these types; own is the length of the header before them. Pebble's
// decoders panic on bad input.
func columns(data []byte, own int, types ...colblk.DataType) (d colblk.BlockDecoder, ok bool) {
	size := int(colblk.HeaderSize(len(types), uint32(own)))
	if len(data) < size {
		return d, false
	}
	header := colblk.DecodeHeader(data[own:])
	if header.Version != colblk.Version1 || int(header.Columns) != len(types) {
		return d, false
	}
	d.Init(data, uint32(own))
	for i, want := range types {
		if d.DataType(i) != want {
			return d, false
		}
	}
	return d, true
}

// panicked turns a decoder's panic into an error.
func panicked(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("a block cannot be decoded: %v", r)
	}
}
