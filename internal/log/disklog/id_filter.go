package disklog

import "encoding/binary"

// idFilter is a Bloom filter of the event_ids in a segment, in about two bytes per id. An id that it does not know is
// not in the segment, which saves most appends a lookup in the database. It grows by layers, each twice the size of
// the one before.
type idFilter struct {
	layers []idLayer
}

type idLayer struct {
	bits []uint64
	room int // how many more ids the newest layer takes
}

const (
	firstLayerIDs = 256
	bitsPerID     = 16
	probesPerID   = 8
)

// add adds the hash of an event_id.
func (f *idFilter) add(hash idHash) {
	if n := len(f.layers); n == 0 || f.layers[n-1].room == 0 {
		ids := firstLayerIDs << n
		f.layers = append(f.layers, idLayer{bits: make([]uint64, ids*bitsPerID/64), room: ids})
	}
	newest := &f.layers[len(f.layers)-1]
	newest.room--
	for _, bit := range probes(hash) {
		at := bit % uint64(len(newest.bits)*64)
		newest.bits[at/64] |= 1 << (at % 64)
	}
}

// bytes returns how much memory the filter takes; nil takes none.
func (f *idFilter) bytes() int {
	if f == nil {
		return 0
	}
	n := 0
	for _, l := range f.layers {
		n += 8 * len(l.bits)
	}
	return n
}

// mayHold reports false only for a hash that was never added.
func (f *idFilter) mayHold(hash idHash) bool {
	bits := probes(hash)
	for _, l := range f.layers {
		if l.holds(bits) {
			return true
		}
	}
	return false
}

func (l idLayer) holds(bits [probesPerID]uint64) bool {
	for _, bit := range bits {
		at := bit % uint64(len(l.bits)*64)
		if l.bits[at/64]&(1<<(at%64)) == 0 {
			return false
		}
	}
	return true
}

// probes derives bit positions from the hash itself, which is uniformly distributed already.
func probes(hash idHash) (bits [probesPerID]uint64) {
	at, step := binary.LittleEndian.Uint64(hash[:8]), binary.LittleEndian.Uint64(hash[8:])|1
	for i := range bits {
		bits[i] = at
		at += step
	}
	return bits
}
