package bpe

// A piece that is longer than a window is encoded window by window. Each window begins where a token of the previous
// one ended, well before that window's end. This is exact because of two properties of byte-pair encoding. First,
// neighbouring tokens of an encoding stay the same if the text around them is cut off at token boundaries. Second, a
// sequence of tokens is the encoding of its text if every pair of neighbours is the encoding of its own text. So a
// seam between windows is sound if the pair across it is such an encoding.

const (
	// overlap is how far before a window's end the next one begins at least: more than the length of a token, because
	// the text after the window may change its last tokens.
	overlap = 2 * maxToken
	// minWindow leaves room for at least one token before the overlap.
	minWindow = overlap + maxToken
	// maxSeams is how many token boundaries are tried before a count is estimated.
	maxSeams = 4
)

// seam is a token boundary in a window at which the next window may begin.
type seam struct {
	id         uint32 // of the token before the boundary
	start, end int    // of that token, in the piece
	tokens     int    // of the window up to the boundary
}

// countLong counts the tokens of a piece of any length above zero by windows of
// minWindow to longWindow bytes. The count is an estimate if no sound seam was
// found somewhere; each such place makes it wrong by a few tokens at most.
func (l *longParts) countLong(m *mergeTable, piece string, window int, short *shortParts) (tokens int, estimated bool) {
	defer func() { l.text = "" }() // which belongs to the caller
	for begin := 0; ; {
		l.merge(m, cut(piece, begin, window))
		if begin+window >= len(piece) {
			return tokens + l.count(), estimated
		}
		next, sound := l.nextSeam(m, piece, begin, window, short)
		estimated = estimated || !sound
		tokens += next.tokens
		begin = next.end
	}
}

// nextSeam finds where the window after the one at begin should begin, and
// whether that is known to be sound.
func (l *longParts) nextSeam(m *mergeTable, piece string, begin, window int, short *shortParts) (next seam, sound bool) {
	seams, n := l.seams(begin, window)
	for _, s := range seams[:n] {
		l.merge(m, cut(piece, s.end, window))
		across := piece[s.start : s.end+l.firstLength()]
		if m.mergeShort(across, short) == 2 && short.ids[0] == s.id {
			return s, true
		}
	}
	return seams[0], false
}

// cut returns the window of the piece at begin.
func cut(piece string, begin, window int) string {
	return piece[begin:min(begin+window, len(piece))]
}

// seams returns the last token boundaries before the overlap, last first, and how
// many there are, at least one. The window begins at begin.
func (l *longParts) seams(begin, window int) (seams [maxSeams]seam, n int) {
	var ring [maxSeams]seam
	for at := int32(0); l.next[at] != none && int(l.next[at]) <= window-overlap; at = l.next[at] {
		ring[n%maxSeams] = seam{l.ids[at], begin + int(at), begin + int(l.next[at]), n + 1}
		n++
	}
	for i := range min(n, maxSeams) {
		seams[i] = ring[(n-1-i)%maxSeams]
	}
	return seams, min(n, maxSeams)
}

// firstLength returns the length of the window's first token.
func (l *longParts) firstLength() int {
	if l.next[0] == none {
		return len(l.text)
	}
	return int(l.next[0])
}

// count returns the number of tokens of the window.
func (l *longParts) count() int {
	n := 0
	for at := int32(0); at != none; at = l.next[at] {
		n++
	}
	return n
}
