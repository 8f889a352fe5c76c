package fileview

import (
	"slices"
	"strings"
)

// maxReplaced is in how many places of a region one edit is laid over.
const maxReplaced = 100

// replace lays an edit over what is known. Where its place is not, the new text is kept by
// itself, and the edit is one that what else is known may lack.
func (v *Views) replace(f *file, op Operation) {
	whole := strings.HasSuffix(op.Old, "\n")
	oldText, newText := strings.TrimSuffix(op.Old, "\n"), strings.TrimSuffix(op.New, "\n")
	before, done := f.size(), false
	for i := range f.regions {
		places := 0
		for from := 0; oldText != "" && places < maxReplaced && (op.All || !done); places++ {
			if from = v.layEdit(f, i, edit{oldText, newText, whole}, from); from < 0 {
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

// edit is a text that becomes another. It is of whole lines, or of a part of lines, too.
type edit struct {
	old, new string
	whole    bool
}

// layEdit replaces the first place of an edit in a region from a byte on. It returns the byte
// after the new text, or -1 where there is no such place.
func (v *Views) layEdit(f *file, i int, e edit, from int) int {
	r := &f.regions[i]
	all, starts := r.text()
	at := -1
	for at < 0 {
		n := strings.Index(all[min(from, len(all)):], e.old)
		if n < 0 {
			return -1
		}
		if at = from + n; e.whole && !(wholeLines{all, at, at + len(e.old)}).hold() {
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
	if text := all[starts[first]:at] + e.new + all[end:stop]; text != "" || e.new != "" {
		put = v.fresh(strings.Split(text, "\n"), true)
	}
	r.lines = slices.Concat(r.lines[:first:first], put, r.lines[last+1:])
	f.shift(i, len(put)-(last-first+1))
	return at + len(e.new)
}

// wholeLines is a part of a text.
type wholeLines struct {
	text     string
	from, to int
}

func (w wholeLines) hold() bool {
	return (w.from == 0 || w.text[w.from-1] == '\n') && (w.to == len(w.text) || w.text[w.to] == '\n')
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

// insert puts lines after the one that an operation names.
func (v *Views) insert(f *file, op Operation) {
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
