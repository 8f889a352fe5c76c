// Package fileview knows the newest text that an agent saw of each file that it works on, from its calls:
// what they read, found, wrote and changed. It opens no files. What a call did is inferred from its
// arguments and its result, so a view may be older than the file. It names the calls that it is from, and
// later changes that it could not follow.
//
// [Operations] says what a call does to files. Package shell infers that from commands, package program
// from programs; fileop defines the operations. [Views] keeps what is known of files after the calls.
package fileview

import (
	"iter"
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/fileview/fileop"
)

// Call is a tool call with its result. Views keep its texts.
type Call struct {
	// Operations are what the function of that name returns for the call.
	Operations []fileop.Operation
	Body       string
	// Failed is set if the result is an error, or there is none: the call did nothing, or only a part of
	// its work.
	Failed bool
	// Pointer names its result.
	Pointer string
}

// Views keep what calls showed and wrote of files, as of the newest call.
type Views struct {
	files map[string]*file // by every name that a call gave it
	// ends maps the ends of names (after a slash) to files; nil if several files have a name with that end.
	ends map[string]*file
	// pointers are those of the calls. Calls are numbered from 1, in their order.
	pointers []string
	lines    int
	scans    int // how often the newest call scanned all names
	laid     int // how many bytes the edits of the newest call searched
	work     int // how many bytes edits read and wrote beyond what the texts of calls allow; see allow
	edited   struct {
		file *file // in which the newest edit of the newest call was put; nil where that is not known
		line int   // the number of the line after it
	}
}

// file is what is known of one file.
type file struct {
	name    string
	longest string // the longest of its names; all end alike, and only this one is compared
	touched int    // the newest call that read or changed it; 0 is none
	found   int    // the newest call that found lines of it by a search
	edited  int    // the newest that changed it; 0 is none
	opened  bool   // whether a call opened it by its name; only then a window of it is believed that no call names
	// missed are the newest calls that changed it in an unknown way.
	missed []int
	// regions do not overlap and are in order; those whose place is not known come last.
	regions []region
	whole   bool   // there is one region, and it is the whole file
	sieve   *sieve // of the regions; nil if not built
}

// region is a run of known lines. No line is in two regions.
type region struct {
	from  int // the number of the first line; 0 is not known
	lines []*line
	bytes int // of the lines, with a line feed each
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

// replace replaces the lines [from, to).
func (r *region) replace(from, to int, put []*line) {
	r.bytes += bytesOf(put) - bytesOf(r.lines[from:to])
	r.lines = slices.Replace(r.lines, from, to, put...)
}

// line is a known line of a file. Calls are named by their numbers.
type line struct {
	text    string
	cost    uint64 // of the text as it is shown; 0 is not measured
	touched int    // the call that showed or wrote it last
	edited  int    // the call that wrote it; 0 is none
	span    int    // how many lines that call showed or wrote
	again   bool   // whether it was shown before
}

// NewViews returns views before any call.
func NewViews() *Views { return &Views{files: map[string]*file{}, ends: map[string]*file{}} }

const (
	// mostBytes bounds the arguments and results that lines are taken from: longer ones are hardly source text.
	// Of a call with longer ones it is known only which files it changed.
	mostBytes = 1 << 20
	// wholeBytes: a text below this size was not truncated by a tool that reads a whole file.
	wholeBytes = 16 << 10
	// mostShown bounds the lines taken from one call.
	mostShown = 10_000
)

// Add applies the next call.
func (v *Views) Add(c Call) {
	v.pointers = append(v.pointers, c.Pointer)
	if didNothing(c.Body) {
		return
	}
	if c.Failed {
		v.failed(c.Operations)
		return
	}
	long := len(c.Body) > mostBytes
	if long {
		c.Body = ""
	}
	v.scans, v.edited.file = 0, nil
	v.allow(c)
	ops := c.Operations
	var texts []string
	if all := len(ops) > 0 && !slices.ContainsFunc(ops, func(op fileop.Operation) bool { return !op.Listed }); all {
		ops, texts = listed(ops, c.Body)
	} else {
		ops = outcome(c)
		texts = v.parts(ops, c.Body)
	}
	stopped := long || stopped(c)
	for i, op := range ops {
		if stopped {
			op = op.Uncertain()
		}
		switch op.Kind {
		case fileop.Print:
		case fileop.Search:
			v.found(op, texts[i])
		case fileop.Run:
			v.run(op)
		case fileop.Window, fileop.Splice:
			v.window(op, c.Body)
		case fileop.Change:
			if found := v.known(op.Dir, op.Path); found == nil || op.Part || len(ops) > 1 || !v.rewrite(found, hunks(c.Body, op.Path)) {
				v.follow(op)
			}
		case fileop.Remove, fileop.Move, fileop.Copy, fileop.Substitute:
			v.follow(op)
		default:
			f := v.file(op.Dir, op.Path)
			f.touched = v.now()
			if op.Kind == fileop.Read {
				v.read(f, op, texts[i])
			} else {
				f.edited = v.now()
				v.write(f, op, c.Body)
				if snippet := snippetIn(c.Body); len(ops) == 1 && len(snippet.lines) > 0 {
					v.confirm(f, snippet, !op.All)
				}
			}
		}
	}
	v.forget()
}

// failed applies a call that failed. Its command may have changed files all the same: tests may fail after
// an edit.
func (v *Views) failed(ops []fileop.Operation) {
	v.scans = 0
	for _, op := range ops {
		if !op.Part || op.Shows() || op.Kind == fileop.Run {
			continue
		}
		for _, name := range []string{op.Path, op.To} {
			if name != "" {
				all := op.All && (op.Kind == fileop.Change || op.Kind == fileop.Remove)
				v.follow(fileop.Operation{Kind: fileop.Change, Path: name, Dir: op.Dir, All: all})
			}
		}
	}
}

// read records the text that a call shows of a file.
func (v *Views) read(f *file, op fileop.Operation, text string) {
	if !op.Part {
		op, text = plain(op, text)
	}
	if strings.TrimSpace(text) == "" || saysNothing(text) {
		return
	}
	if strings.Contains(text, " ... eliding lines ") {
		for _, part := range eliding.Split(text, -1) {
			v.readPart(f, op.From, part)
		}
		return
	}
	if strings.Contains(text, hole) {
		for from, part := range present(text) {
			if op.From > 0 {
				from += op.From
			} else {
				from = 0
			}
			v.readPart(f, from, part)
		}
		return
	}
	known, one := v.readPart(f, op.From, text)
	if op.All && one && known.from == 1 && len(text) < wholeBytes {
		v.lines -= f.size() - len(known.lines)
		f.regions, f.sieve, f.missed, f.whole = []region{known}, nil, nil, !op.Listed
	}
}

// present yields the parts of a text between its holes, and how many lines come before each.
func present(text string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		for at := 0; at < len(lines); at++ {
			from := at
			for at < len(lines) && lines[at] != hole {
				at++
			}
			if from < at && !yield(from, strings.Join(lines[from:at], "\n")) {
				return
			}
		}
	}
}

// readPart records lines of a file. It returns the first run of them, and whether there is no other.
func (v *Views) readPart(f *file, from int, text string) (first region, one bool) {
	runs := parseShown(text, from)
	for i, run := range runs {
		known := regionOf(run.from, v.fresh(run.lines, false))
		if known.from == 0 {
			at, stale := v.seek(f, known.lines)
			if stale {
				v.cut(f, at, len(known.lines), 0) // they may be elsewhere
			} else {
				known.from = at
			}
		}
		if i == 0 {
			first = known
		}
		v.show(f, known)
	}
	return first, len(runs) == 1
}

// write records what a call writes to a file.
func (v *Views) write(f *file, op fileop.Operation, body string) {
	switch op.Kind {
	case fileop.Write:
		v.lines -= f.size()
		f.regions, f.sieve, f.missed = nil, nil, nil
		f.whole = op.New == "" || strings.HasSuffix(op.New, "\n")
		v.show(f, regionOf(1, v.fresh(split(op.New), true)))
	case fileop.Append:
		v.add(f, op)
	case fileop.Replace:
		v.replace(f, op, body)
	case fileop.Insert:
		v.insert(f, op)
	}
}

// now is the number of the newest call.
func (v *Views) now() int { return len(v.pointers) }

// file returns the file of a name in a folder, a new one if none is known. A name may also be an end of a known
// name or end with it: calls name a file by its full path or relative to their folder.
func (v *Views) file(dir, name string) *file {
	key, full := keyOf(name), fileop.Join(dir, name)
	f := v.known(dir, name)
	if f == nil {
		f = &file{name: strings.TrimPrefix(name, "./")}
		if v.files[key] != nil {
			f.name = full // the name in short is of another folder's file
		}
	}
	if v.files[key] == nil {
		v.know(key, f)
	}
	if full != "" && v.files[full] == nil {
		v.know(full, f)
	}
	return f
}

// known returns the file of a name in a folder, which may be unknown; nil if there is none.
func (v *Views) known(dir, name string) *file {
	key, full := keyOf(name), fileop.Join(dir, name)
	if f := v.at(key, full); f != nil {
		return f
	}
	if full == "" {
		return v.same(key)
	}
	if f := v.same(full); f != nil || v.files[key] != nil {
		return f
	}
	if f := v.same(key); f != nil && f.fits(full) {
		return f
	}
	return nil
}

// keyOf normalizes a name of a file.
func keyOf(name string) string { return strings.TrimPrefix(fileop.Slashed(name), "./") }

// same returns the only file that the name may be a different name of; nil if there is none, or several.
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

// fits reports whether the name may be a different name of the file: one of the two ends with the other.
func (f *file) fits(name string) bool {
	return strings.HasSuffix(name, "/"+f.longest) || strings.HasSuffix(f.longest, "/"+name)
}

// know adds a name to a file.
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

// ends yields the ends of a name after each slash, the shortest first.
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

// fresh returns lines as the newest call shows or writes them.
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
