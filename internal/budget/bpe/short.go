package bpe

// maxShort is the length, in bytes, up to which a piece is merged by a search through all pairs for each merge. That
// is quadratic, but the fastest way for pieces as short as these.
const maxShort = 128

// shortParts has the parts into which a piece was merged so far. It has room for two tokens of any length.
type shortParts struct {
	ids [2 * maxToken]uint32
	// ranks are the tokens that each part and the next one merge into.
	ranks [2 * maxToken]uint32
}

// mergeShort encodes a piece of 1 to len(parts.ids) bytes into parts.ids and
// returns the number of tokens.
func (m *mergeTable) mergeShort(piece string, parts *shortParts) int {
	n := len(piece)
	ids, ranks := parts.ids[:n], parts.ranks[:n]
	for i := range n - 1 {
		ids[i] = m.byteIDs[piece[i]]
		ranks[i] = m.bytePairs[pair(piece[i], piece[i+1])]
	}
	ids[n-1], ranks[n-1] = m.byteIDs[piece[n-1]], noToken
	for {
		best, at := uint32(noToken), 0
		for i, r := range ranks {
			if r < best {
				best, at = r, i
			}
		}
		if best == noToken {
			return len(ids)
		}
		ids[at] = best
		copy(ids[at+1:], ids[at+2:])
		copy(ranks[at+1:], ranks[at+2:])
		ids, ranks = ids[:len(ids)-1], ranks[:len(ranks)-1]
		if at+1 < len(ids) {
			ranks[at] = m.merged(best, ids[at+1])
		} else {
			ranks[at] = noToken
		}
		if at > 0 {
			ranks[at-1] = m.merged(ids[at-1], best)
		}
	}
}
