package budget

import (
	"sort"
	"strings"
	"unicode/utf8"
)

// Lines caches the extent of a text up to the end of each line, so that parts of the text need not be measured again.
type Lines []Extent

// Extent is the size of a text or of its beginning.
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

// Whole returns the extent of the whole text.
func (l Lines) Whole() Extent { return l[len(l)-1] }

// UpTo returns the extent of the first bytes of the text; the rest costs Whole minus that. ok is false if it is
// unknown, because no line ends there or costs do not add up there (see Adds).
func (l Lines) UpTo(bytes int) (e Extent, ok bool) {
	i := sort.Search(len(l), func(i int) bool { return l[i].Bytes >= bytes })
	if i == len(l) || l[i].Bytes != bytes {
		return Extent{}, false
	}
	return l[i], true
}
