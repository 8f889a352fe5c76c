package fileview

import (
	"strings"
)

// place is a place in a file: a line and column of a region; base counts the lines of the regions before
// it.
type place struct{ region, base, line, column int }

// next is the beginning of the region after that of a place.
func (f *file) next(at place) place {
	return place{region: at.region + 1, base: at.base + len(f.regions[at.region].lines)}
}

// wanted is the old text of an edit, prepared for the search.
type wanted struct {
	lines        []string
	begins, ends bool
	read         uint32   // how many bytes of lines find read, with a few for each line
	probe        int      // index of the longest line
	grams        []uint32 // of the longest line
}

func (e *edit) wanted() *wanted {
	w := &wanted{lines: strings.Split(e.old, "\n"), begins: e.begins, ends: e.ends}
	for i := range w.lines {
		if len(w.lines[i]) > len(w.lines[w.probe]) {
			w.probe = i
		}
	}
	longest := w.lines[w.probe]
	for i := range gramsIn(longest) {
		w.grams = append(w.grams, gram(longest, i))
	}
	return w
}

// in returns the column at which the text begins in line i, the first one at from or after it.
func (w *wanted) in(lines []*line, i, from int) (column int, ok bool) {
	last := len(w.lines) - 1
	if i+last >= len(lines) {
		return 0, false
	}
	text, first := lines[i].text, w.lines[0]
	switch column = len(text) - len(first); {
	case last == 0 && w.begins:
		return 0, from == 0 && strings.HasPrefix(text, first) && (!w.ends || column == 0)
	case last == 0 && !w.ends:
		if from > len(text) {
			return 0, false
		}
		n := strings.Index(text[from:], first)
		return from + n, n >= 0
	case column < from || w.begins && column > 0 || !strings.HasSuffix(text, first):
		return 0, false
	case last == 0:
		return column, true
	}
	for n := 1; n < last; n++ {
		if lines[i+n].text != w.lines[n] {
			return 0, false
		}
	}
	end := lines[i+last].text
	return column, strings.HasPrefix(end, w.lines[last]) && (!w.ends || len(end) == len(w.lines[last]))
}

// find returns the first place of a text at or after at, in the regions before number before. It ends early
// when may refuses a region.
func (f *file) find(w *wanted, at place, before int, may func(*region) bool) (place, bool) {
	s := f.sifted(w)
	var here struct{ chunk, first, missing int } // the current chunk of the sieve, its first line, and the gram that was missing last
	known := -1                                  // the chunk that holds is about
	holds := false
	for ; at.region < before; at = f.next(at) {
		r := &f.regions[at.region]
		if !may(r) {
			return at, false
		}
		for line := at.line + w.probe; line < len(r.lines); line++ { // line is that of the longest wanted line
			if s != nil {
				for here.first+s.chunks[here.chunk].lines <= at.base+line {
					here.first += s.chunks[here.chunk].lines
					here.chunk++
				}
				if known != here.chunk {
					known, holds = here.chunk, s.chunks[here.chunk].may(w.grams, &here.missing)
				}
				if !holds {
					line = here.first + s.chunks[here.chunk].lines - at.base - 1
					continue
				}
			}
			w.read += uint32(len(r.lines[line].text) + lineWork)
			from := 0
			if line-w.probe == at.line {
				from = at.column
			}
			if column, ok := w.in(r.lines, line-w.probe, from); ok {
				return place{at.region, at.base, line - w.probe, column}, true
			}
		}
	}
	return at, false
}

// lineWork is how many bytes a line counts for that is read, beyond its text.
const lineWork = 8

// after is the place so many bytes after the beginning of a line, if its region goes so far.
func (f *file) after(at place, bytes int) place {
	lines := f.regions[at.region].lines
	for at.column = bytes; at.line < len(lines) && at.column > len(lines[at.line].text); at.line++ {
		at.column -= len(lines[at.line].text) + 1
	}
	return at
}
