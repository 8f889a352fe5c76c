// Package fileview knows the newest text that an agent saw of each file that it works on, from
// its calls: what they read, found, wrote and changed. No file is opened. What a call did is
// read off its arguments and its result, so a view may be older than the file: it says of what
// call it is, and which later changes it could not follow.
package fileview

import (
	"cmp"
	"iter"
	"slices"
	"strings"
)

// Call is a tool call with its result. Views keep its texts.
type Call struct {
	Tool, Arguments, Body string
	// Failed is set where it did nothing: its result is an error, or there is none.
	Failed bool
	// Pointer names its result.
	Pointer string
}

// Views are the files that calls worked on, as the newest of them left these.
type Views struct {
	files map[string]*file // by every name that a call gave it
	// ends are the files by what names end with after a slash; nil where several do.
	ends map[string]*file
	// pointers are those of the calls, by their number from 1 on.
	pointers []string
	lines    int
}

// file is what is known of one.
type file struct {
	name    string
	touched int // the newest call that read or changed it; 0 is none
	found   int // the newest that found lines of it
	edited  int // the newest that changed it; 0 is none
	// missed are calls that changed it in a way that is not known.
	missed []int
	// regions do not overlap and are in order; those whose place is not known come last.
	regions []region
}

// region is a run of lines.
type region struct {
	from  int // the number of the first line; 0 is not known
	lines []line
}

func (r *region) end() int { return r.from + len(r.lines) }

// line is one of a file. Calls are named by their number.
type line struct {
	text    string
	cost    uint64 // of the text as it is shown; 0 is not measured
	touched int    // the call that showed or wrote it last
	edited  int    // the call that wrote it; 0 is none
	span    int    // how many lines that call showed or wrote
	again   bool   // whether it was shown before
}

// NewViews returns those of no calls.
func NewViews() *Views { return &Views{files: map[string]*file{}, ends: map[string]*file{}} }

const (
	// mostLines are kept of all files, and mostNames of them are known by name; those touched
	// longest ago are forgotten first.
	mostLines = 50_000
	mostNames = 1_024
	// mostBytes is above what a text that is read or written is no source that one works on.
	mostBytes = 1 << 20
	// wholeBytes is below what no tool cuts a file that is read whole.
	wholeBytes = 16 << 10
	// mostShown are taken of one call.
	mostShown = 10_000
)

// Add takes in the next call.
func (v *Views) Add(c Call) {
	v.pointers = append(v.pointers, c.Pointer)
	if c.Failed || len(c.Body) > mostBytes || len(c.Arguments) > mostBytes {
		return
	}
	for _, op := range Operations(c.Tool, c.Arguments) {
		if op.Kind == Search {
			v.found(op.Path, c.Body)
			continue
		}
		f := v.file(op.Path)
		f.touched = v.now()
		switch op.Kind {
		case Read:
			shown := parseShown(unwrap(c.Body), op.From)
			known := region{shown.from, v.fresh(shown.lines, false)}
			v.show(f, known)
			if op.All && len(c.Body) < wholeBytes {
				v.lines -= f.size() - len(known.lines)
				f.regions, f.missed = []region{known}, nil
			}
		case Write:
			v.lines -= f.size()
			f.edited, f.regions, f.missed = v.now(), nil, nil
			v.show(f, region{1, v.fresh(split(op.New), true)})
		case Replace:
			f.edited = v.now()
			v.replace(f, op)
		case Insert:
			f.edited = v.now()
			v.insert(f, op)
		case Change:
			f.edited = v.now()
			f.missed = append(f.missed, v.now())
		}
	}
	v.forget()
}

// now is the number of the newest call.
func (v *Views) now() int { return len(v.pointers) }

// file is that with a name, or the one whose name ends with it or ends it: calls name a
// file by its path, or by the path from where they work.
func (v *Views) file(name string) *file {
	name = strings.TrimPrefix(name, "./")
	f := v.files[name]
	if f == nil {
		if f = v.same(name); f == nil {
			f = &file{name: name}
		}
		v.know(name, f)
	}
	return f
}

// same is the only file that a name may be another name of; nil where there is none, or
// several.
func (v *Views) same(name string) *file {
	found, known := v.ends[name]
	for end := range ends(name) {
		if f := v.files[end]; f != nil {
			if known && f != found {
				return nil
			}
			found, known = f, true
		}
	}
	return found
}

// know takes note of a name of a file.
func (v *Views) know(name string, f *file) {
	v.files[name] = f
	for end := range ends(name) {
		if other, ok := v.ends[end]; ok && other != f {
			v.ends[end] = nil
		} else {
			v.ends[end] = f
		}
	}
}

// ends yields what a name ends with after its last slashes, the shortest first.
func ends(name string) iter.Seq[string] {
	const most = 16 // elements of a path
	return func(yield func(string) bool) {
		at := len(name)
		for range most {
			if at = strings.LastIndexByte(name[:at], '/'); at < 0 || !yield(name[at+1:]) {
				return
			}
		}
	}
}

func split(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }

// fresh are lines that the newest call showed or wrote.
func (v *Views) fresh(texts []string, edited bool) []line {
	texts = texts[:min(len(texts), mostShown)]
	out := make([]line, len(texts))
	for i, text := range texts {
		out[i] = line{text: strings.TrimSuffix(text, "\r"), touched: v.now(), span: len(texts)}
		if edited {
			out[i].edited = v.now()
		}
	}
	return out
}

// show puts a region in the place of what was known there.
func (v *Views) show(f *file, shown region) {
	if len(shown.lines) == 0 {
		return
	}
	before := f.size()
	if shown.from == 0 {
		f.regions = append(f.regions, shown)
	} else {
		f.lay(shown)
	}
	v.lines += f.size() - before
}

// lay puts a region whose place is known in the place of what was there.
func (f *file) lay(shown region) {
	var kept []region
	for _, old := range f.regions {
		if old.from == 0 {
			if !contains(shown.lines, old.lines) {
				kept = append(kept, old)
			}
			continue
		}
		for i, l := range old.lines {
			if n := old.from + i - shown.from; n >= 0 && n < len(shown.lines) && shown.lines[n].text == l.text {
				at := &shown.lines[n]
				at.edited, at.cost, at.again = max(at.edited, l.edited), l.cost, true
			}
		}
		if n := min(shown.from-old.from, len(old.lines)); n > 0 {
			kept = append(kept, region{old.from, old.lines[:n:n]})
		}
		if n := max(shown.end()-old.from, 0); n < len(old.lines) {
			kept = append(kept, region{old.from + n, old.lines[n:]})
		}
	}
	f.join(append(kept, shown))
}

// join orders regions by their lines and joins those that follow each other.
func (f *file) join(all []region) {
	slices.SortStableFunc(all, func(a, b region) int {
		return cmp.Or(cmp.Compare(min(b.from, 1), min(a.from, 1)), cmp.Compare(a.from, b.from))
	})
	f.regions = nil
	for _, r := range all {
		if last := len(f.regions) - 1; last >= 0 && r.from > 0 && f.regions[last].from > 0 && f.regions[last].end() == r.from {
			f.regions[last].lines = slices.Concat(f.regions[last].lines, r.lines)
			continue
		}
		f.regions = append(f.regions, r)
	}
}

func contains(all, part []line) bool {
	for i := 0; i+len(part) <= len(all); i++ {
		if slices.EqualFunc(all[i:i+len(part)], part, func(a, b line) bool { return a.text == b.text }) {
			return true
		}
	}
	return false
}

func (f *file) size() int {
	n := 0
	for i := range f.regions {
		n += len(f.regions[i].lines)
	}
	return n
}

// newest are the files of which lines are known, that which was touched last first, then
// those of which lines were found: a search finds lines of many files that nobody works on.
func (v *Views) newest() []*file {
	var all []*file
	once := map[*file]bool{}
	for _, f := range v.files {
		if !once[f] && len(f.regions) > 0 {
			once[f] = true
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b *file) int {
		return cmp.Or(cmp.Compare(b.touched, a.touched), cmp.Compare(b.found, a.found), cmp.Compare(a.name, b.name))
	})
	return all
}

// forget drops the files that were touched longest ago while there is too much.
func (v *Views) forget() {
	if v.lines <= mostLines && len(v.files) <= mostNames {
		return
	}
	all := v.newest()
	for i := len(all) - 1; i > 0 && (v.lines > mostLines/2 || i >= mostNames/2); i-- {
		v.lines -= all[i].size()
		all[i].regions = nil
	}
	known := v.files
	v.files, v.ends = map[string]*file{}, map[string]*file{}
	for name, f := range known {
		if len(f.regions) > 0 || f.touched == v.now() || f.found == v.now() {
			v.know(name, f)
		}
	}
}
