package fileview

import (
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/fileview/fileop"
)

// maxReplaced bounds in how many places of a region one edit is applied.
const maxReplaced = 100

// mostLaid bounds the bytes of regions and windows that the edits of one call search, counted once for each place.
const mostLaid = 64 << 20

// replace applies an edit to the known lines. If its old text is not among them, the new text becomes a
// region without a place, and the other lines may lack this edit.
func (v *Views) replace(f *file, op fileop.Operation) {
	whole := strings.HasSuffix(op.Old, "\n")
	e := edit{strings.TrimSuffix(op.Old, "\n"), strings.TrimSuffix(op.New, "\n"), whole, whole, !whole || op.New == ""}
	done := false
	if e.old != "" {
		var at place
		w := e.wanted()
		for places := 0; op.All || !done; places++ {
			if places == maxReplaced {
				at, places = f.next(at), 0
			}
			after, ok := v.layEdit(f, &e, w, at, len(f.regions))
			if !ok {
				break
			}
			if after.region > at.region {
				places = 0
			}
			at, done = after, true
		}
	}
	if done {
		return
	}
	f.whole = false
	if e.old != "" {
		v.lack(f)
	}
	if e.new != "" {
		v.show(f, regionOf(0, v.fresh(split(e.new), true)))
	}
}

// substitute applies an edit of a script to the known lines. The file counts as changed in an unknown way
// if the old text is not known, or if its first place may be in lines that are not known.
func (v *Views) substitute(f *file, op fileop.Operation) {
	e := edit{old: op.Old, new: op.New}
	if strings.HasSuffix(e.old, "\n") {
		e = edit{strings.TrimSuffix(e.old, "\n"), strings.TrimSuffix(e.new, "\n"), e.new == "", true, e.new == ""}
	}
	before := len(f.regions)
	if first := slices.IndexFunc(f.regions, func(r region) bool { return r.from != 1 }); first >= 0 && !op.All && !op.ByLine {
		before = first
	}
	var at place
	places := 0
	for w := e.wanted(); e.old != "" && places <= maxReplaced; places++ {
		var ok bool
		if at, ok = v.layEdit(f, &e, w, at, before); !ok {
			break
		}
		if op.ByLine {
			if at.line, at.column = at.line+1, 0; at.line >= len(f.regions[at.region].lines) {
				at = f.next(at)
			}
		} else if !op.All {
			before = 0
		}
	}
	if f.edited = v.now(); places == 0 || places > maxReplaced || v.laid > mostLaid {
		v.miss(f)
	}
}

// edit replaces one text by another. begins and ends require the old text to begin and end where lines do.
// cut removes a line that would become empty.
type edit struct {
	old, new          string
	begins, ends, cut bool
}

// layEdit applies an edit to its first place at or after from, in the regions before number before. It
// returns the place after the new text; false if there is no such place.
func (v *Views) layEdit(f *file, e *edit, w *wanted, from place, before int) (place, bool) {
	at, ok := f.find(w, from, before, func(r *region) bool {
		if v.laid > mostLaid {
			return false
		}
		v.laid += max(r.bytes-1, 0)
		return true
	})
	if !ok {
		return at, false
	}
	r := &f.regions[at.region]
	last := at.line + len(w.lines) - 1
	end := len(w.lines[len(w.lines)-1]) // the column after the old text
	if last == at.line {
		end += at.column
	}
	var put []*line
	if text := r.lines[at.line].text[:at.column] + e.new + r.lines[last].text[end:]; text != "" || e.new != "" || !e.cut {
		put = v.fresh(strings.Split(text, "\n"), true)
	}
	if placed := f.placed(); at.region >= placed && placed > 0 || f.stale(r.lines[at.line:last+1]) {
		v.lack(f) // what has a place may have changed, or moved
	}
	removed := last - at.line + 1
	f.sieve.splice(at.base+at.line, removed, put)
	r.replace(at.line, last+1, put)
	f.shift(at.region, len(put)-removed)
	v.lines += len(put) - removed
	return f.after(at, at.column+len(e.new)), true
}

// stale reports whether some of the lines may not be those of the file any more.
func (f *file) stale(lines []*line) bool {
	n := len(f.missed)
	return n > 0 && slices.ContainsFunc(lines, func(l *line) bool { return l.touched < f.missed[n-1] })
}

// shift moves the regions after one by so many lines.
func (f *file) shift(after, lines int) {
	if lines == 0 {
		return
	}
	for i := after + 1; i < len(f.regions); i++ {
		if f.regions[i].from > 0 && f.regions[after].from > 0 {
			f.regions[i].from += lines
		}
	}
}

// text is the region's.
func (r *region) text() string {
	all := make([]string, len(r.lines))
	for i := range r.lines {
		all[i] = r.lines[i].text
	}
	return strings.Join(all, "\n")
}

// insert puts lines after the one that an operation names.
func (v *Views) insert(f *file, op fileop.Operation) {
	put := v.fresh(split(op.New), true)
	for i := range f.regions {
		r := &f.regions[i]
		if n := op.From - r.from + 1; r.from > 0 && n >= 0 && n <= len(r.lines) {
			f.sieve.splice(f.linesBefore(i)+n, 0, put)
			r.replace(n, n, put)
			f.shift(i, len(put))
			v.lines += len(put)
			return
		}
	}
	f.whole = false
	v.overwrite(f, op.From+1, 0, split(op.New))
}
