// Package fileview knows the newest text that an agent saw of each file that it works on, from
// its calls: what they read, found, wrote and changed. No file is opened. What a call did is
// read off its arguments and its result, so a view may be older than the file: it says of what
// call it is, and which later changes it could not follow.
//
// [Operations] says what a call does to files. Package shell reads that off commands, program off
// programs, and fileop has the operations. [Views] keeps what is known of files after them.
package fileview

import (
	"iter"
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/fileview/fileop"
)

// Call is a tool call with its result. Views keep its texts.
type Call struct {
	// Operations is what it does, as the function of this name says.
	Operations []fileop.Operation
	Body       string
	// Failed is set where its result is an error, or there is none: it did nothing, or a part of what it was
	// to do.
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
	scans    int // of all names, by the newest call
	laid     int // bytes that its edits were laid over
}

// file is what is known of one.
type file struct {
	name    string
	longest string // of its names, as they are alike; what it has at its end may be another
	touched int    // the newest call that read or changed it; 0 is none
	found   int    // the newest that found lines of it
	edited  int    // the newest that changed it; 0 is none
	// missed are calls that changed it in a way that is not known, the newest.
	missed []int
	// regions do not overlap and are in order; those whose place is not known come last.
	regions []region
	whole   bool   // the one region is all of it
	sieve   *sieve // of the regions; nil is not made
}

// region is a run of lines, which no other has.
type region struct {
	from  int // the number of the first line; 0 is not known
	lines []*line
	bytes int // of the lines, with one more for each
}

func regionOf(from int, lines []*line) region { return region{from, lines, bytesOf(lines)} }

func bytesOf(lines []*line) int {
	n := 0
	for i := range lines {
		n += len(lines[i].text) + 1
	}
	return n
}

func (r *region) end() int { return r.from + len(r.lines) }

// replace puts lines in the place of those from one to another.
func (r *region) replace(from, to int, put []*line) {
	r.bytes += bytesOf(put) - bytesOf(r.lines[from:to])
	r.lines = slices.Replace(r.lines, from, to, put...)
}

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
	// mostBytes is above what arguments, or a text that is read, are of no source that one works on.
	mostBytes = 1 << 20
	// wholeBytes is below what no tool cuts a file that is read whole.
	wholeBytes = 16 << 10
	// mostShown are taken of one call.
	mostShown = 10_000
)

// Add takes in the next call.
func (v *Views) Add(c Call) {
	v.pointers = append(v.pointers, c.Pointer)
	if c.Failed {
		v.failed(c.Operations)
		return
	}
	if len(c.Body) > mostBytes {
		return
	}
	texts := parts(c.Operations, c.Body)
	v.scans, v.laid = 0, 0
	stopped := stopped(c)
	for i, op := range c.Operations {
		if stopped {
			op = op.Uncertain()
		}
		switch op.Kind {
		case fileop.Print:
		case fileop.Search:
			v.found(op.Path, texts[i])
		case fileop.Run:
			v.run(op.Path, op.All)
		case fileop.Change, fileop.Remove, fileop.Move, fileop.Copy, fileop.Substitute:
			v.follow(op)
		default:
			f := v.file(op.Path)
			f.touched = v.now()
			if op.Kind == fileop.Read {
				v.read(f, op, texts[i])
			} else {
				f.edited = v.now()
				v.write(f, op)
			}
		}
	}
	v.forget()
}

// failed takes in a call that failed. What a command was to change may be changed: tests fail after an edit.
func (v *Views) failed(ops []fileop.Operation) {
	v.scans = 0
	for _, op := range ops {
		if !op.Part || op.Shows() || op.Kind == fileop.Run {
			continue
		}
		for _, name := range []string{op.Path, op.To} {
			if name != "" {
				all := op.All && (op.Kind == fileop.Change || op.Kind == fileop.Remove)
				v.follow(fileop.Operation{Kind: fileop.Change, Path: name, All: all})
			}
		}
	}
}

// read takes in the text that a call shows of a file.
func (v *Views) read(f *file, op fileop.Operation, text string) {
	if strings.TrimSpace(text) == "" || saysNothing(text) {
		return
	}
	if strings.Contains(text, " ... eliding lines ") {
		for _, part := range eliding.Split(text, -1) {
			v.readPart(f, op.From, part)
		}
		return
	}
	known := v.readPart(f, op.From, text)
	if op.All && len(text) < wholeBytes {
		v.lines -= f.size() - len(known.lines)
		f.regions, f.sieve, f.missed, f.whole = []region{known}, nil, nil, known.from == 1
	}
}

// readPart takes in lines of a file that follow each other.
func (v *Views) readPart(f *file, from int, text string) region {
	shown := parseShown(text, from)
	known := regionOf(shown.from, v.fresh(shown.lines, false))
	if known.from == 0 {
		known.from = f.seek(known.lines)
	}
	v.show(f, known)
	return known
}

// write takes in what a call writes to a file.
func (v *Views) write(f *file, op fileop.Operation) {
	switch op.Kind {
	case fileop.Write:
		v.lines -= f.size()
		f.regions, f.sieve, f.missed = nil, nil, nil
		f.whole = op.New == "" || strings.HasSuffix(op.New, "\n")
		v.show(f, regionOf(1, v.fresh(split(op.New), true)))
	case fileop.Append:
		v.add(f, op)
	case fileop.Replace:
		v.replace(f, op)
	case fileop.Insert:
		v.insert(f, op)
	}
}

// now is the number of the newest call.
func (v *Views) now() int { return len(v.pointers) }

// file is that with a name, or the one whose name ends with it or ends it: calls name a
// file by its path, or by the path from where they work.
func (v *Views) file(name string) *file {
	f := v.known(name)
	if f == nil {
		f = &file{name: strings.TrimPrefix(name, "./")}
	}
	if key := keyOf(name); v.files[key] == nil {
		v.know(key, f)
	}
	return f
}

// known is the file with a name; nil where there is none.
func (v *Views) known(name string) *file {
	key := keyOf(name)
	if f := v.files[key]; f != nil {
		return f
	}
	return v.same(key)
}

// keyOf is what names of a file have alike.
func keyOf(name string) string { return strings.TrimPrefix(fileop.Slashed(name), "./") }

// same is the only file that a name may be another name of; nil where there is none, or
// several.
func (v *Views) same(name string) *file {
	found, known := v.ends[name]
	for end := range ends(name) {
		if f := v.files[end]; f != nil && f.fits(name) {
			if known && f != found {
				return nil
			}
			found, known = f, true
		}
	}
	return found
}

// fits reports whether a name may be another one of the file: one of two ends with the other.
func (f *file) fits(name string) bool {
	return strings.HasSuffix(name, "/"+f.longest) || strings.HasSuffix(f.longest, "/"+name)
}

// know takes note of a name of a file.
func (v *Views) know(name string, f *file) {
	v.files[name] = f
	if len(name) > len(f.longest) {
		f.longest = name
	}
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
func (v *Views) fresh(texts []string, edited bool) []*line {
	texts = texts[:min(len(texts), mostShown)]
	all, out := make([]line, len(texts)), make([]*line, len(texts))
	for i, text := range texts {
		out[i] = &all[i]
		all[i] = line{text: strings.TrimSuffix(text, "\r"), touched: v.now(), span: len(texts)}
		if edited {
			all[i].edited = v.now()
		}
	}
	return out
}

func (f *file) size() int { return f.linesBefore(len(f.regions)) }
