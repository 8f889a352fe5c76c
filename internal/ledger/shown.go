package ledger

import (
	"iter"
	"strings"
)

// Shown is the text next to which names are listed. It says which names that text has: those that Identifiers finds
// in it are marked, and others are searched for in the text. windows is a filter that makes most of these searches
// unnecessary.
type Shown struct {
	index   *Index
	number  int
	text    string
	windows [1 << 10]uint64 // set of 16-bit hashes of every four bytes of text
}

// Shown returns an empty text.
func (x *Index) Shown() *Shown {
	x.shown++
	return &Shown{index: x, number: x.shown}
}

// Grow sets the text to a longer one that begins with the current text.
func (s *Shown) Grow(text string) {
	before := len(s.text)
	s.text = text
	for n := range windows(text[max(before-3, 0):]) {
		s.windows[n>>6] |= 1 << (n & 63)
	}
	s.mark(text[before:])
}

// mark marks the names in a text as shown.
func (s *Shown) mark(text string) {
	Identifiers(text, func(start, end int) bool {
		if e := s.index.entries[text[start:end]]; e != nil {
			e.shown = s.number
		}
		return true
	})
}

func (s *Shown) holds(r ranked) bool {
	if r.shown == s.number {
		return true
	}
	for n := range windows(r.name) {
		if s.windows[n>>6]&(1<<(n&63)) == 0 {
			return false
		}
	}
	return strings.Contains(s.text, r.name)
}

// windows yields a hash of every four bytes in a row.
func windows(s string) iter.Seq[uint16] {
	return func(yield func(uint16) bool) {
		var n uint32
		for i := range len(s) {
			if n = n<<8 | uint32(s[i]); i >= 3 && !yield(uint16(n*0x9E3779B1>>16)) {
				return
			}
		}
	}
}
