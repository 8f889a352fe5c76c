package bpe

// longWindow is how many bytes of a long piece are merged at a time.
const longWindow = 4096

// none is where the list of parts ends.
const none = -1

// longParts is what up to longWindow bytes have been merged into so far: a linked
// list of parts, each at the place of its first byte, and a heap of the merges
// that are possible, best first. It takes 0.2 MB and is made when first needed.
type longParts struct {
	text  string // what is merged here
	ids   [longWindow]uint32
	ranks [longWindow]uint32 // of the merge with the next part; noToken for a merged one
	next  [longWindow]int32
	prev  [longWindow]int32
	// heap holds rank<<32 | place. Entries are not taken out when their merge
	// becomes impossible: they then disagree with ranks.
	heap []uint64
}

// merge encodes a text of 1 to longWindow bytes in O(n log n). The tokens are
// those at place 0 and along next.
func (l *longParts) merge(m *mergeTable, text string) {
	if text == l.text {
		return // so runs of one character take next to no time
	}
	l.text = text
	l.fill(m, text)
	for len(l.heap) > 0 {
		top := l.pop()
		rank, at := uint32(top>>32), int32(uint32(top))
		if l.ranks[at] != rank {
			continue
		}
		gone := l.next[at]
		after := l.next[gone]
		l.ids[at], l.ranks[gone] = rank, noToken
		l.next[at] = after
		if after != none {
			l.prev[after] = at
		}
		l.consider(m, at)
		if before := l.prev[at]; before != none {
			l.consider(m, before)
		}
	}
}

func (l *longParts) fill(m *mergeTable, text string) {
	l.heap = l.heap[:0]
	for i := range len(text) {
		l.ids[i] = m.byteIDs[text[i]]
		l.prev[i], l.next[i] = int32(i-1), int32(i+1)
		l.ranks[i] = noToken
		if i+1 < len(text) {
			if rank := m.bytePairs[pair(text[i], text[i+1])]; rank != noToken {
				l.ranks[i] = rank
				l.heap = append(l.heap, uint64(rank)<<32|uint64(i))
			}
		}
	}
	l.next[len(text)-1] = none
	for i := len(l.heap)/2 - 1; i >= 0; i-- {
		l.down(i)
	}
}

// consider enters the merge of the part at a place with its next one.
func (l *longParts) consider(m *mergeTable, at int32) {
	rank := uint32(noToken)
	if next := l.next[at]; next != none {
		rank = m.merged(l.ids[at], l.ids[next])
	}
	l.ranks[at] = rank
	if rank != noToken {
		l.push(uint64(rank)<<32 | uint64(at))
	}
}

func (l *longParts) push(entry uint64) {
	l.heap = append(l.heap, entry)
	h := l.heap
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if h[parent] <= entry {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = entry
}

func (l *longParts) pop() uint64 {
	top, last := l.heap[0], len(l.heap)-1
	l.heap[0] = l.heap[last]
	l.heap = l.heap[:last]
	if last > 0 {
		l.down(0)
	}
	return top
}

func (l *longParts) down(i int) {
	h := l.heap
	entry := h[i]
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1] < h[child] {
			child++
		}
		if entry <= h[child] {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = entry
}
