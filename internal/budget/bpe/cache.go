package bpe

// A pieceCache caches the counts of pieces of up to maxCached bytes. Each piece has one place, and evicts the piece
// that was there. Whole pieces are stored, so the cache never answers for another piece, and a count does not depend
// on earlier ones. It takes 256 KiB and belongs to one goroutine at a time.
type pieceCache struct {
	shorts [1 << shortBits]shortEntry
	longs  [1 << longBits]longEntry
}

const (
	maxCachedShort = 8
	maxCached      = 30

	shortBits = 13
	longBits  = 12
)

// shortEntry has a piece of up to maxCachedShort bytes, padded with zeros. meta is its number of tokens and, in the
// lower bits, its length. The zero entry is empty.
type shortEntry struct{ text, meta uint64 }

// longEntry has a longer piece. The low 48 bits of the last word are text; the two bytes above them are the piece's
// length and its number of tokens.
type longEntry [4]uint64

const (
	shortCountShift = 8
	lengthShift     = 48
	longCountShift  = 56
)

// short returns the key of the piece s[p:end] and its place.
func (c *pieceCache) short(s string, p, end int) (shortEntry, *shortEntry) {
	size := end - p
	key := shortEntry{wordAt(s, p, size), uint64(size)}
	return key, &c.shorts[(key.text^key.meta)*goldenRatio>>(64-shortBits)]
}

// count returns the number of tokens of the piece with the key, or 0 if another piece
// has its place.
func (e *shortEntry) count(key shortEntry) int {
	if e.text != key.text || e.meta&(1<<shortCountShift-1) != key.meta {
		return 0
	}
	return int(e.meta >> shortCountShift)
}

func (e *shortEntry) set(key shortEntry, count int) {
	e.text, e.meta = key.text, key.meta|uint64(count)<<shortCountShift
}

// long does the same as short, for pieces longer than maxCachedShort.
func (c *pieceCache) long(s string, p, end int) (longEntry, *longEntry) {
	key := longEntry{word64(s[p : p+8])}
	size := end - p
	i := 1
	for p += 8; end-p > 8; p += 8 {
		key[i] = word64(s[p : p+8])
		i++
	}
	key[i] = wordAt(s, p, end-p)
	key[3] |= uint64(size) << lengthShift

	h := key[0]*goldenRatio ^ key[1]
	for _, w := range key[2:] {
		h = (h^h>>32)*goldenRatio ^ w
	}
	return key, &c.longs[(h^h>>32)*goldenRatio>>(64-longBits)]
}

func (e *longEntry) count(key longEntry) int {
	if e[0] != key[0] || e[1] != key[1] || e[2] != key[2] || e[3]&(1<<longCountShift-1) != key[3] {
		return 0
	}
	return int(e[3] >> longCountShift)
}

func (e *longEntry) set(key longEntry, count int) {
	key[3] |= uint64(count) << longCountShift
	*e = key
}

// word64 reads 8 bytes, the first one lowest.
func word64(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// wordAt reads the n bytes of s at p, 1 to 8 of them, padded with zeros.
func wordAt(s string, p, n int) uint64 {
	if p+8 <= len(s) {
		unused := 64 - 8*n
		return word64(s[p:p+8]) << unused >> unused
	}
	var w uint64
	for i := n - 1; i >= 0; i-- {
		w = w<<8 | uint64(s[p+i])
	}
	return w
}
