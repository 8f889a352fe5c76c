package fileview

import (
	"encoding/binary"
	"slices"
)

// sieve says which lines of a file cannot hold a text, so that an edit searches few lines. splice keeps it
// up to date. Its line numbers count from 0 through all regions.
type sieve struct {
	chunks []chunk
	bytes  int // of the lines that it was built from
	added  int // bytes added since
	worn   bool
}

// chunk are consecutive lines. grams is a filter of the grams in them and in lines that were removed since.
type chunk struct {
	lines, bytes int
	grams        *[1 << (gramBits - 6)]uint64
}

const (
	// A gram is gramBytes bytes in a row; gramBits bits of its hash are kept.
	gramBytes, gramBits = 4, 13
	// A chunk is built with about chunkLines lines or chunkBytes bytes, and may grow to
	// chunkMost*chunkLines lines.
	chunkLines, chunkBytes, chunkMost = 64, 8 << 10, 4
	// Up to fewLines inserted lines are added to an existing chunk instead of new ones.
	fewLines = 16
	// spliceBytes is how much each change counts towards a rebuild, in addition to the bytes that it adds.
	spliceBytes = 64
)

// sifted is the sieve of a file, rebuilt for a search if it is worn; nil for a file of few lines.
func (f *file) sifted(w *wanted) *sieve {
	if s := f.sieve; s != nil && !s.worn && s.added <= 2*s.bytes {
		return s
	}
	f.sieve = nil
	if f.size() <= chunkLines {
		return nil
	}
	f.sieve = &sieve{}
	for i := range f.regions {
		f.sieve.chunks = appendChunks(f.sieve.chunks, f.regions[i].lines)
		f.sieve.bytes += f.regions[i].bytes
	}
	w.read += uint32(f.sieve.bytes)
	return f.sieve
}

// appendChunks appends chunks of lines. The last one there is takes some of them, if it has room.
func appendChunks(all []chunk, lines []*line) []chunk {
	for i := range lines {
		n := len(all) - 1
		if n < 0 || all[n].lines >= chunkLines || all[n].bytes >= chunkBytes {
			all = append(all, chunk{grams: new([1 << (gramBits - 6)]uint64)})
			n++
		}
		all[n].add(lines[i].text)
	}
	return all
}

func (c *chunk) add(text string) {
	c.lines++
	c.bytes += len(text)
	for i := range gramsIn(text) {
		g := gram(text, i)
		c.grams[g>>6] |= 1 << (g & 63)
	}
}

// gramsIn is how many grams a text has.
func gramsIn(text string) int { return max(0, len(text)-gramBytes+1) }

func gram(text string, at int) uint32 {
	const multiplier = 2654435761 // by Knuth
	b := [gramBytes]byte{text[at], text[at+1], text[at+2], text[at+3]}
	return binary.LittleEndian.Uint32(b[:]) * multiplier >> (32 - gramBits)
}

// may reports whether the chunk may hold a text with these grams. missing caches the index of the gram that
// was missing last, which is tried first.
func (c *chunk) may(grams []uint32, missing *int) bool {
	has := func(i int) bool { return c.grams[grams[i]>>6]&(1<<(grams[i]&63)) != 0 }
	if len(grams) == 0 {
		return true
	}
	if !has(*missing) {
		return false
	}
	for i := range grams {
		if !has(i) {
			*missing = i
			return false
		}
	}
	return true
}

// splice replaces removed lines from number at on by others.
func (s *sieve) splice(at, removed int, put []*line) {
	if s == nil || s.worn {
		return
	}
	s.added += spliceBytes
	for i := range put {
		s.added += len(put[i].text)
	}
	n := 0
	for n < len(s.chunks) && (at > s.chunks[n].lines || at == s.chunks[n].lines && removed > 0) {
		at -= s.chunks[n].lines
		n++
	}
	if n == len(s.chunks) {
		s.chunks = appendChunks(s.chunks, put)
		return
	}
	c := &s.chunks[n]
	taken := min(removed, c.lines-at)
	c.lines -= taken
	last := n + 1
	for removed -= taken; removed > 0; removed -= taken {
		taken = min(removed, s.chunks[last].lines)
		if s.chunks[last].lines -= taken; s.chunks[last].lines == 0 {
			last++
		}
	}
	s.chunks = slices.Delete(s.chunks, n+1, last)
	c = &s.chunks[n]
	if n == len(s.chunks)-1 && at == c.lines {
		s.chunks = appendChunks(s.chunks, put)
		return
	}
	if len(put) <= fewLines {
		for i := range put {
			c.add(put[i].text)
		}
		s.worn = c.lines > chunkMost*chunkLines
		return
	}
	tail := chunk{c.lines - at, c.bytes, new(*c.grams)}
	c.lines = at
	s.chunks = slices.Insert(s.chunks, n+1, append(appendChunks(nil, put), tail)...)
}
