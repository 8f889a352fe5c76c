package fileview

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/contextd/contextd/internal/fileview/fileop"
)

var (
	// windowHead matches the line above the lines of a file that SWE-agent shows: its name, and how many lines
	// it has.
	windowHead = regexp.MustCompile(`(?m)^\[File: (.+) \((\d{1,7}) lines total\)\]$`)
	// windowLine is one of these lines, and searchedLine one of those that it found.
	windowLine   = regexp.MustCompile(`^(\d{1,7}):(.*)$`)
	searchedHead = regexp.MustCompile(`(?m)^Found \d+ matches for .* in (/.+):$`)
	searchedLine = regexp.MustCompile(`^Line (\d{1,7}):(.*)$`)
	// openFile matches the line after each command that names the open file.
	openFile = regexp.MustCompile(`(?m)^\(Open file: (/.+)\)$`)
)

// original is what SWE-agent writes before the unchanged window of a file, if it refuses an edit.
const original = "\nThis is the original code before your edit\n"

// notApplied is a part of what SWE-agent says of other edits that it refuses.
const notApplied = "Your edit was not applied"

// window records the window in a result, after the change that the call made to that file.
func (v *Views) window(op fileop.Operation, body string) {
	text := body
	at := strings.Index(body, original)
	refused := at >= 0 || strings.Contains(body, notApplied)
	if at >= 0 {
		text = body[at:]
	}
	all := windowHead.FindAllStringSubmatchIndex(text, -1)
	if len(all) == 0 {
		v.withoutWindow(op, text, refused)
		return
	}
	head := all[len(all)-1]
	total, err := strconv.Atoi(text[head[4]:head[5]])
	shown, whole := windowed(text[head[1]:])
	edits := !refused && (op.Kind == fileop.Splice || op.Old != "")
	name := text[head[2]:head[3]]
	f := v.believed(op, name)
	if f == nil {
		if other := v.known("", name); other != nil && edits {
			v.miss(other)
		}
		return
	}
	if err == nil {
		f.touched = v.now()
		if edits {
			f.edited = v.now()
			v.splice(f, op, shown, total)
		}
		if edits {
			v.confirm(f, shown, false)
		} else {
			if whole && len(shown.lines) >= total {
				v.lines -= f.size()
				f.regions, f.sieve, f.missed = nil, nil, nil
			}
			v.show(f, regionOf(shown.from, v.fresh(shown.lines, false)))
		}
		f.whole = f.whole || whole && len(f.regions) == 1 && len(f.missed) == 0
	}
}

// believed is the file that the result of a call names, where the call names it, too, or one before opened it; else nil:
// what other tools return may look like a window.
func (v *Views) believed(op fileop.Operation, name string) *file {
	if path.Base(op.Path) == path.Base(name) {
		f := v.file("", name)
		f.opened = true
		return f
	}
	if f := v.known("", name); f != nil && f.opened {
		return f
	}
	return nil
}

// confirm records the lines that an edit shows after it: all that it wrote, or a part. If they are not as
// expected, other lines moved, too.
func (v *Views) confirm(f *file, lines shown, all bool) {
	known := regionOf(lines.from, v.fresh(lines.lines, false))
	outside := func(r region) bool {
		at := slices.IndexFunc(r.lines, func(l *line) bool { return l.edited == v.now() })
		return r.from > 0 && at >= 0 && (r.from+at < known.from || r.from+at >= known.end())
	}
	if !f.agrees(known) || all && slices.ContainsFunc(f.regions, outside) {
		v.doubt(f)
		v.unlay(f)
	}
	v.show(f, known)
}

// unlay forgets what the newest call changed: it is elsewhere.
func (v *Views) unlay(f *file) {
	before := f.size()
	var kept []region
	for _, r := range f.regions {
		for at := 0; at < len(r.lines); at++ {
			from := at
			for at < len(r.lines) && r.lines[at].edited != v.now() {
				at++
			}
			if from < at {
				part := regionOf(0, slices.Clone(r.lines[from:at]))
				if r.from > 0 {
					part.from = r.from + from
				}
				kept = append(kept, part)
			}
		}
	}
	f.regions, f.sieve = kept, nil
	v.lines += f.size() - before
}

// withoutWindow records a result that shows no window: what a search found, or nothing but which file is open.
func (v *Views) withoutWindow(op fileop.Operation, text string, refused bool) {
	if m := searchedHead.FindStringSubmatchIndex(text); m != nil {
		f := v.believed(op, text[m[2]:m[3]])
		if f == nil {
			return
		}
		f.found = v.now()
		for line := range strings.SplitSeq(text[m[1]:], "\n") {
			if m := searchedLine.FindStringSubmatch(line); m != nil {
				if n, err := strconv.Atoi(m[1]); err == nil && n > 0 {
					v.show(f, regionOf(n, v.fresh([]string{m[2]}, false)))
				}
			}
		}
		return
	}
	if m := openFile.FindAllStringSubmatch(text, -1); op.Kind == fileop.Splice && !refused && len(m) > 0 {
		if f := v.known("", m[len(m)-1][1]); f != nil {
			f.touched = v.now()
			v.miss(f)
		}
	}
}

// windowed are the lines below the head of a window, and whether nothing is said of lines above and below it.
func windowed(text string) (out shown, whole bool) {
	whole = true
	for line := range strings.SplitSeq(strings.TrimPrefix(text, "\n"), "\n") {
		m := windowLine.FindStringSubmatch(line)
		switch {
		case m != nil:
			if n, err := strconv.Atoi(m[1]); err != nil || len(out.lines) > 0 && n != out.from+len(out.lines) {
				return out, false
			} else if len(out.lines) == 0 {
				out.from = max(n, 1)
			}
			out.lines = append(out.lines, m[2])
		case strings.HasPrefix(line, "<<<<< ") && strings.HasSuffix(line, " CURSOR >>>>>"):
		case strings.HasSuffix(line, " more lines above)"):
			whole = false
		case strings.HasSuffix(line, " more lines below)"):
			return out, false
		default:
			return out, whole
		}
	}
	return out, whole
}

// splice applies an edit that a window shows. If its place is unknown, the lines after it may have moved.
func (v *Views) splice(f *file, op fileop.Operation, window shown, total int) {
	put := strings.Split(strings.TrimSuffix(op.New, "\n"), "\n")
	if op.New == "" {
		put = nil
	}
	from, gone := op.From, op.Lines
	switch {
	case op.Kind == fileop.Window:
		v.replaceInWindow(f, op, window)
		return
	case op.All:
		from = max(total-len(put)+1, 1)
	case from == 0:
		v.doubt(f)
		return
	}
	v.overwrite(f, from, gone, put)
}

// overwrite replaces the given number of lines from one on.
func (v *Views) overwrite(f *file, from, gone int, put []string) {
	v.cut(f, from, gone, len(put)-gone)
	if len(put) > 0 {
		v.show(f, regionOf(from, v.fresh(put, true)))
	}
}

// cut forgets the given number of lines from one on, and moves those after them.
func (v *Views) cut(f *file, from, gone, moved int) {
	before := f.size()
	var kept []region
	for _, r := range f.regions {
		if r.from == 0 || r.end() <= from {
			kept = append(kept, r)
			continue
		}
		if r.from < from {
			kept = append(kept, regionOf(r.from, slices.Clone(r.lines[:from-r.from])))
		}
		if r.end() > from+gone {
			at := max(from+gone-r.from, 0)
			kept = append(kept, regionOf(r.from+at+moved, slices.Clone(r.lines[at:])))
		}
	}
	f.regions, f.sieve = kept, nil
	v.lines += f.size() - before
}

// replaceInWindow applies the replacement of a text by another one that the window shows. Its place is where the
// window has the new text and the file had the old one.
func (v *Views) replaceInWindow(f *file, op fileop.Operation, window shown) {
	before, after := strings.Split(op.Old, "\n"), strings.Split(op.New, "\n")
	if len(before) == len(after) && !op.All {
		return // the window shows all that changed
	}
	if op.All {
		v.replace(f, op, "")
		return
	}
	place := 0
	for i := range window.lines {
		if v.laid > mostLaid {
			v.doubt(f)
			return
		}
		v.laid += len(op.New)
		v.work += len(op.New)
		if n := window.from + i; i+len(after) <= len(window.lines) && strings.Contains(strings.Join(window.lines[i:i+len(after)], "\n"), op.New) && f.has(n, before) {
			if place > 0 {
				v.doubt(f)
				return
			}
			place = n
		}
	}
	if place == 0 {
		v.doubt(f)
		return
	}
	at := place - window.from
	v.overwrite(f, place, len(before), window.lines[at:at+len(after)])
}

// doubt records that known lines of a file may have moved.
func (v *Views) doubt(f *file) {
	f.whole = false
	v.lack(f)
}

// has reports whether lines from one on hold a text.
func (f *file) has(from int, text []string) bool {
	for _, r := range f.regions[:f.placed()] {
		if r.from <= from && from+len(text) <= r.end() {
			part := region{lines: r.lines[from-r.from : from-r.from+len(text)]}
			return strings.Contains(part.text(), strings.Join(text, "\n"))
		}
	}
	return false
}

// agrees reports whether the known lines in the place of a region are the region's.
func (f *file) agrees(with region) bool {
	for _, r := range f.regions[:f.placed()] {
		for n := max(r.from, with.from); n < min(r.end(), with.end()); n++ {
			if r.lines[n-r.from].text != with.lines[n-with.from].text {
				return false
			}
		}
	}
	return true
}
