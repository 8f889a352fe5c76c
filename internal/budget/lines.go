package budget

import (
	"sort"
	"strings"
	"unicode/utf8"
)

// Lines are what a text costs up to each of its lines, so that what a part of it costs need
// not be counted again.
type Lines []Extent

// Extent is how much there is of a text.
type Extent struct {
	Bytes, Chars, Breaks int // characters are runes, and breaks line feeds
	Cost                 uint64
}

// Lines measures a text.
func (g Gauge) Lines(text string) Lines {
	var now Extent
	all := Lines{now}
	for now.Bytes < len(text) {
		end := now.Bytes
		for end == now.Bytes || end < len(text) && !Adds(text[:end], text[end:]) {
			if n := strings.IndexByte(text[end:], '\n'); n >= 0 {
				end += n + 1
				now.Breaks++
			} else {
				end = len(text)
			}
		}
		line := text[now.Bytes:end]
		now.Bytes = end
		now.Chars += utf8.RuneCountInString(line)
		now.Cost += g.Piece(line).Cost
		all = append(all, now)
	}
	return all
}

// Whole is the extent of the whole text.
func (l Lines) Whole() Extent { return l[len(l)-1] }

// UpTo is the extent of the first bytes of the text, of which the rest costs what Whole has
// more. ok is false where that is not known: no line ends there, or one that does not add up.
func (l Lines) UpTo(bytes int) (e Extent, ok bool) {
	i := sort.Search(len(l), func(i int) bool { return l[i].Bytes >= bytes })
	if i == len(l) || l[i].Bytes != bytes {
		return Extent{}, false
	}
	return l[i], true
}
