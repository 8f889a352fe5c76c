package fileview

import (
	"math"
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/fileview/fileop"
)

// maxReplaced bounds in how many places of a region one edit is applied.
const maxReplaced = 100

// mostLaid bounds the bytes of regions and windows that the edits of one call search, counted once for each place.
const mostLaid = 64 << 20

// The edits of all calls together may read and write workOf bytes of lines for each byte of the calls' texts, and mostWork
// more. Where they did, the edits of a call are unknown changes, until the texts of calls allow more again.
const workOf, mostWork = 1_024, 64 << 20

// allow begins to count for a call what its edits do.
func (v *Views) allow(c Call) {
	bytes := len(c.Body)
	for i := range c.Operations {
		bytes += len(c.Operations[i].Old) + len(c.Operations[i].New)
	}
	v.work, v.laid = max(0, v.work-workOf*bytes), 0
	if v.work > mostWork {
		v.laid = mostLaid + 1
	}
}

// replace applies an edit to the known lines. If its old text is not among them, the new text becomes a region without
// a place, and the other lines may lack this edit. If it is not certain at which place an edit of one is, the file counts
// as changed in an unknown way.
func (v *Views) replace(f *file, op fileop.Operation, body string) {
	e := edit{old: op.Old, new: op.New, cut: op.Trim}
	if strings.HasSuffix(op.Old, "\n") && (op.New == "" || strings.HasSuffix(op.New, "\n")) { // lines become lines
		e = edit{strings.TrimSuffix(op.Old, "\n"), strings.TrimSuffix(op.New, "\n"), true, true, op.New == ""}
	}
	done := false
	switch {
	case e.old == "":
	case op.All:
		done = v.replaceAll(f, &e)
	default:
		w := e.wanted()
		at, places := v.spot(f, w, op)
		v.work += int(w.read)
		if places == 1 && op.Trim && op.New == "" && at.column > 0 && f.ends(w, at) { // the next line goes on in this one
			e.old += "\n"
			if w = e.wanted(); at.line+len(w.lines) > len(f.regions[at.region].lines) {
				places = 2
			}
		}
		if places > 1 {
			v.miss(f)
			return
		}
		if done = places == 1; done {
			v.put(f, &e, w, at)
			v.edited.file = nil
			if r := f.regions[at.region]; r.from > 0 {
				v.edited.file, v.edited.line = f, r.from+at.line+strings.Count(e.new, "\n")+1
			}
		}
	}
	if done {
		return
	}
	f.whole = false
	if op.Old != "" || f.size() > 0 {
		v.lack(f)
	}
	if parts := shownAfter(body); len(parts) > 0 {
		for _, part := range parts {
			v.show(f, regionOf(0, v.fresh(part, true)))
		}
	} else if e.new != "" {
		v.show(f, regionOf(0, v.fresh(split(e.new), true)))
	}
}

// replaceAll applies an edit at all places, and reports whether there is any. One may be in lines of which only some are
// known, or in others, and move those after it.
func (v *Views) replaceAll(f *file, e *edit) (done bool) {
	var at place
	w := e.wanted()
	defer func() { v.work += int(w.read) }()
	moves := strings.Count(e.old, "\n") != strings.Count(e.new, "\n") || e.cut && e.new == ""
	apart := len(f.regions) > 1 || len(f.regions) == 1 && f.regions[0].from != 1
	last := !e.ends && strings.HasSuffix(e.old, "\n") // the text may be the file's last line, too
	if !f.whole && moves && apart || (!f.whole || last) && f.overlaps(w) {
		v.lack(f)
	}
	for places := 0; ; places++ {
		if places == maxReplaced {
			at, places = f.next(at), 0
		}
		after, ok := v.layEdit(f, e, w, at, len(f.regions))
		if !ok {
			return done
		}
		if after.region > at.region {
			places = 0
		}
		at, done = after, true
	}
}

// overlaps reports whether a region ends with what the text begins with, or begins with what it ends with.
func (f *file) overlaps(w *wanted) bool {
	const most = 32 // lines of the text
	last := len(w.lines) - 1
	return slices.ContainsFunc(f.regions, func(r region) bool {
		for n := 1; n <= min(last, most, len(r.lines)); n++ {
			if w.across(r.lines[len(r.lines)-n:], 0) || w.across(r.lines[:n], last+1-n) {
				return true
			}
		}
		return false
	})
}

// across reports whether lines are those of the text from one on.
func (w *wanted) across(lines []*line, from int) bool {
	last := len(w.lines) - 1
	for i, l := range lines {
		switch want := w.lines[from+i]; {
		case l.text == want:
		case from+i == 0 && strings.HasSuffix(l.text, want), from+i == last && strings.HasPrefix(l.text, want):
		default:
			return false
		}
	}
	return true
}

// spot is the place of an edit of one place, and how many there may be: 0 if none is known, 2 if it is not certain
// which it is. Lines whose place in the file is not known count only if no others hold the text, and the edit does not say
// where it is: then the text may be in the file twice.
func (v *Views) spot(f *file, w *wanted, op fileop.Operation) (at place, places int) {
	placed, next, from := f.placed(), place{}, v.begins(f, op)
	after := false // whether at is the first place at or after from
	for tries := 0; ; tries++ {
		found, ok := f.find(w, next, len(f.regions), v.may)
		if v.laid > mostLaid || tries == maxReplaced {
			return at, 2
		}
		if !ok || found.region >= placed {
			if ok && places == 0 && op.From == 0 {
				return found, 1
			}
			break
		}
		line := f.regions[found.region].from + found.line
		if op.From == 0 || op.From <= line && line+w.span() <= op.From+op.Lines {
			if places++; places == 1 || op.First && !after && line >= from {
				at, after = found, line >= from
			}
			if places > 1 && (after || !op.First) {
				break
			}
		}
		next = found
		if last := len(w.lines) - 1; last > 0 || w.begins {
			next.line, next.column = found.line+max(last, 1), 0
		} else {
			next.column += max(len(w.lines[0]), 1)
		}
	}
	switch known := after && f.regions[at.region].from <= from; {
	case !op.First || places == 0:
	case places == 1 && after && w.distinct(), places == 1 && from == math.MaxInt && w.distinct():
	case known:
		places = 1
	case places == 1 && !after:
		places = 0 // it is before the place where the tool begins
	default:
		places = 2
	}
	return at, places
}

// span is how many lines the text is of.
func (w *wanted) span() int {
	n := len(w.lines)
	if n > 1 && w.lines[n-1] == "" {
		n--
	}
	return n
}

// distinct reports whether a text is hardly in a file twice.
func (w *wanted) distinct() bool {
	n := 0
	for _, line := range w.lines {
		n += len(strings.TrimSpace(line))
	}
	return n >= leastLine
}

// begins is the number of the line from which on a tool looks for the first place of an edit: after its last one, and
// after the line that the edit names.
func (v *Views) begins(f *file, op fileop.Operation) int {
	from := 1
	if v.edited.file == f {
		from = v.edited.line
	}
	if op.Anchor == "" {
		return from
	}
	for i := range f.placed() {
		r := &f.regions[i]
		if !v.may(r) {
			break
		}
		for at := max(from-r.from, 0); at < len(r.lines); at++ {
			if strings.TrimSpace(r.lines[at].text) != op.Anchor {
				continue
			}
			if r.from > from && len(op.Anchor) < leastLine {
				return math.MaxInt // it may be in lines before these, too
			}
			return r.from + at + 1
		}
	}
	return math.MaxInt
}

// ends reports whether a text at a place ends where a line does.
func (f *file) ends(w *wanted, at place) bool {
	last := len(w.lines) - 1
	end := len(w.lines[last])
	if last == 0 {
		end += at.column
	}
	return end == len(f.regions[at.region].lines[at.line+last].text)
}

// may reports whether a region may be searched for an edit, and counts it.
func (v *Views) may(r *region) bool {
	if v.laid > mostLaid {
		return false
	}
	v.laid += max(r.bytes-1, 0)
	return true
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
	w := e.wanted()
	defer func() { v.work += int(w.read) }()
	for ; e.old != "" && places <= maxReplaced; places++ {
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
	at, ok := f.find(w, from, before, v.may)
	if !ok {
		return at, false
	}
	return v.put(f, e, w, at), true
}

// put applies an edit at a place, and returns the one after the new text. It does not where the text is in lines that may
// have changed: only what it replaces is the file's for certain.
func (v *Views) put(f *file, e *edit, w *wanted, at place) place {
	r := &f.regions[at.region]
	last := at.line + len(w.lines) - 1
	end := len(w.lines[len(w.lines)-1]) // the column after the old text
	if last == at.line {
		end += at.column
	}
	stale := f.stale(r.lines[at.line : last+1])
	if stale && (at.column > 0 || end < len(r.lines[last].text)) {
		v.lack(f)
		return f.after(at, at.column+len(e.old))
	}
	var put []*line
	if text := r.lines[at.line].text[:at.column] + e.new + r.lines[last].text[end:]; text != "" || e.new != "" || !e.cut {
		put = v.fresh(strings.Split(text, "\n"), true)
	}
	if placed := f.placed(); at.region >= placed && placed > 0 || stale || f.astray(r.lines[at.line:last+1]) {
		v.lack(f) // what has a place may have changed, or moved
	}
	removed := last - at.line + 1
	v.work += bytesOf(put)
	if len(put) != removed {
		v.work += len(r.lines) - last
	}
	f.sieve.splice(at.base+at.line, removed, put)
	r.replace(at.line, last+1, put)
	f.shift(at.region, len(put)-removed)
	v.lines += len(put) - removed
	return f.after(at, at.column+len(e.new))
}

// stale reports whether some of the lines may not be those of the file any more.
func (f *file) stale(lines []*line) bool {
	n := len(f.missed)
	return n > 0 && slices.ContainsFunc(lines, func(l *line) bool { return l.touched < f.missed[n-1] })
}

// astray reports whether some of the lines may be elsewhere in the file: the call that wrote them changed it in an unknown
// way, too.
func (f *file) astray(lines []*line) bool {
	n := len(f.missed)
	return n > 0 && slices.ContainsFunc(lines, func(l *line) bool { return l.touched == f.missed[n-1] && l.edited == l.touched })
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
