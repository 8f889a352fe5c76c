package bpe

import "math"

// A token's id takes tokenBits, so that the two parts of a merge and its result
// share one word of a mergeTable.
const (
	tokenBits = 18
	tokenMask = 1<<tokenBits - 1
)

// noToken says that two tokens do not merge. It is greater than every id, like the rank of a merge that never
// happens.
const noToken = math.MaxUint32

// mergeTable maps a pair of adjacent tokens to the token they merge into.
//
// It has one pair for every token, although the bytes of a token may be divided into two tokens in several ways. The
// reason is that nothing merged across the ends of a token's bytes in a text, so these bytes went through the same
// merges as if they were alone. So the last merge joined the same two parts that it joins if the token is encoded by
// itself.
type mergeTable struct {
	byteIDs [256]uint32
	// bytePairs is indexed by pair; every piece starts as single bytes.
	bytePairs [1 << 16]uint32
	// filter has the bit of every pair in slots, and few others: most pairs that
	// are looked up are not there, and this is small enough to stay near the
	// processor.
	filter [1 << (filterBits - 6)]uint64
	// slots hold first<<36 | second<<18 | merged, by open addressing. 0 is empty:
	// the least token that two others merge into is more than 0.
	slots []uint64
	shift uint8
}

const filterBits = 22

// pair returns the index of two adjacent bytes.
func pair(first, second byte) int { return int(first)<<8 | int(second) }

// newMergeTable returns an empty table for up to the given number of tokens.
func newMergeTable(tokens int) *mergeTable {
	m := &mergeTable{}
	for i := range m.byteIDs {
		m.byteIDs[i] = noToken
	}
	for i := range m.bytePairs {
		m.bytePairs[i] = noToken
	}
	bits := uint8(1)
	for 1<<bits < tokens+tokens/4 {
		bits++
	}
	m.slots = make([]uint64, 1<<bits)
	m.shift = 64 - bits
	return m
}

// goldenRatio is 2^64 divided by the golden ratio: a product with it spreads
// consecutive keys over the high bits.
const goldenRatio = 0x9e3779b97f4a7c15

// add records that first and second merge into merged.
func (m *mergeTable) add(first, second, merged uint32) {
	key := uint64(first)<<tokenBits | uint64(second)
	hash := key * goldenRatio
	bit := hash >> (64 - filterBits)
	m.filter[bit>>6] |= 1 << (bit & 63)
	i := hash >> m.shift
	for m.slots[i] != 0 {
		i = (i + 1) & uint64(len(m.slots)-1)
	}
	m.slots[i] = key<<tokenBits | uint64(merged)
}

// merged returns the token that first and second merge into, or noToken.
func (m *mergeTable) merged(first, second uint32) uint32 {
	key := uint64(first)<<tokenBits | uint64(second)
	hash := key * goldenRatio
	bit := hash >> (64 - filterBits)
	if m.filter[bit>>6]&(1<<(bit&63)) == 0 {
		return noToken
	}
	for i := hash >> m.shift; ; i++ {
		slot := m.slots[i&uint64(len(m.slots)-1)]
		if slot == 0 {
			return noToken
		}
		if slot>>tokenBits == key {
			return uint32(slot & tokenMask)
		}
	}
}
