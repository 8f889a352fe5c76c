package fileview

import (
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/fileview/fileop"
)

// maxReplaced is in how many places of a region one edit is laid over.
const maxReplaced = 100

// mostLaid is how many bytes the edits of one call are laid over, once for each of their places.
const mostLaid = 64 << 20

// replace lays an edit over what is known. Where its place is not, the new text is kept by
// itself, and the edit is one that what else is known may lack.
func (v *Views) replace(f *file, op fileop.Operation) {
	whole := strings.HasSuffix(op.Old, "\n")
	oldText, newText := strings.TrimSuffix(op.Old, "\n"), strings.TrimSuffix(op.New, "\n")
	before, done := f.size(), false
	for i := range f.regions {
		places := 0
		for from := 0; oldText != "" && places < maxReplaced && (op.All || !done); places++ {
			if from = v.layEdit(f, i, edit{oldText, newText, whole, whole, true}, from); from < 0 {
				break
			}
			done = true
		}
	}
	v.lines += f.size() - before
	if done {
		return
	}
	f.whole = false
	if oldText != "" {
		f.missed = append(f.missed, v.now())
	}
	if newText != "" {
		v.show(f, region{0, v.fresh(split(newText), true)})
	}
}

// substitute lays an edit over what is known, unless its place is not known, or not the only one that may
// be the first.
func (v *Views) substitute(f *file, op fileop.Operation) {
	e := edit{old: op.Old, new: op.New}
	if strings.HasSuffix(e.old, "\n") {
		e = edit{strings.TrimSuffix(e.old, "\n"), strings.TrimSuffix(e.new, "\n"), e.new == "", true, e.new == ""}
	}
	before, places := f.size(), 0
	for i := 0; i < len(f.regions) && e.old != ""; i++ {
		if !op.All && !op.ByLine && (places > 0 || f.regions[i].from != 1) {
			break
		}
		for from := 0; from >= 0 && places <= maxReplaced; places++ {
			if from = v.layEdit(f, i, e, from); from < 0 {
				break
			}
			if op.ByLine {
				from = f.regions[i].nextLine(from)
			} else if !op.All {
				from = -1
			}
		}
	}
	v.lines += f.size() - before
	if f.edited = v.now(); places == 0 || places > maxReplaced || v.laid > mostLaid {
		v.miss(f)
	}
}

// edit is a text that becomes another. It may have to begin and to end where lines do, and takes lines
// away of which nothing is left, or leaves them empty.
type edit struct {
	old, new          string
	begins, ends, cut bool
}

// layEdit replaces the first place of an edit in a region from a byte on. It returns the byte
// after the new text, or -1 where there is no such place.
func (v *Views) layEdit(f *file, i int, e edit, from int) int {
	if v.laid > mostLaid {
		return -1
	}
	r := &f.regions[i]
	all, starts := r.text()
	v.laid += len(all)
	at := -1
	for at < 0 {
		n := strings.Index(all[min(from, len(all)):], e.old)
		if n < 0 {
			return -1
		}
		if at = from + n; !e.fits(all, at) {
			from, at = at+1, -1
		}
	}
	end := at + len(e.old)
	lineOf := func(b int) int {
		n, _ := slices.BinarySearch(starts, b+1)
		return n - 1
	}
	first, last := lineOf(at), lineOf(end)
	stop := len(all)
	if last+1 < len(starts) {
		stop = starts[last+1] - 1
	}
	var put []line
	if text := all[starts[first]:at] + e.new + all[end:stop]; text != "" || e.new != "" || !e.cut {
		put = v.fresh(strings.Split(text, "\n"), true)
	}
	r.lines = slices.Concat(r.lines[:first:first], put, r.lines[last+1:])
	f.shift(i, len(put)-(last-first+1))
	return at + len(e.new)
}

// fits reports whether an edit's lines begin and end at a place as they have to.
func (e *edit) fits(text string, at int) bool {
	end := at + len(e.old)
	return (!e.begins || at == 0 || text[at-1] == '\n') && (!e.ends || end == len(text) || text[end] == '\n')
}

// shift moves the regions after one by so many lines.
func (f *file) shift(after, lines int) {
	for i := after + 1; i < len(f.regions); i++ {
		if f.regions[i].from > 0 && f.regions[after].from > 0 {
			f.regions[i].from += lines
		}
	}
}

// text is the region's, and where each line of it begins.
func (r *region) text() (string, []int) {
	var all strings.Builder
	starts := make([]int, len(r.lines))
	for i, l := range r.lines {
		if i > 0 {
			all.WriteByte('\n')
		}
		starts[i] = all.Len()
		all.WriteString(l.text)
	}
	return all.String(), starts
}

// nextLine is the byte after the line that a byte is in, or -1.
func (r *region) nextLine(at int) int {
	text, _ := r.text()
	n := strings.IndexByte(text[at:], '\n')
	if n < 0 {
		return -1
	}
	return at + n + 1
}

// insert puts lines after the one that an operation names.
func (v *Views) insert(f *file, op fileop.Operation) {
	put := v.fresh(split(op.New), true)
	for i := range f.regions {
		r := &f.regions[i]
		if n := op.From - r.from + 1; r.from > 0 && n >= 0 && n <= len(r.lines) {
			r.lines = slices.Concat(r.lines[:n:n], put, r.lines[n:])
			f.shift(i, len(put))
			v.lines += len(put)
			return
		}
	}
	f.missed, f.whole = append(f.missed, v.now()), false
	v.show(f, region{0, put})
}
