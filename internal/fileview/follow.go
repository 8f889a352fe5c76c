package fileview

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/fileview/fileop"
	"github.com/contextd/contextd/internal/fileview/program"
)

// mostScans bounds how many operations of a call may scan all names of files.
const mostScans = 100

// follow applies an operation whose effect does not depend on a text that the call shows or writes, such as
// a move. Nothing is known of files that no call showed or wrote, so nothing about them can become wrong.
func (v *Views) follow(op fileop.Operation) {
	f := v.known(op.Dir, op.Path)
	if f == nil && op.Kind == fileop.Change {
		f = v.known("", op.Path) // whether the command ran in that folder may be uncertain, too
	}
	switch op.Kind {
	case fileop.Change:
		if f != nil {
			f.touched = v.now()
			v.miss(f)
		} else if op.All {
			v.within(op, func(f *file, _ bool) {
				if f.edited > 0 {
					v.miss(f)
				}
			})
		}
	case fileop.Substitute:
		if f != nil {
			f.touched = v.now()
			v.substitute(f, op)
		}
	case fileop.Remove:
		if f != nil {
			v.empty(f)
		} else if op.All {
			v.within(op, func(f *file, certain bool) {
				if certain {
					v.empty(f)
				} else {
					v.miss(f)
				}
			})
		}
	case fileop.Move:
		v.move(f, op)
	case fileop.Copy:
		if to := v.known(op.Dir, op.To); to != nil && to != f {
			v.copy(f, to)
		}
	}
}

// stops matches what sed, shells and interpreters print about a script that they could not run, or not to
// its end.
var stops = regexp.MustCompile(`(?m)^(?:Traceback \(most recent call last\)|  File "<(?:stdin|string)>", line|[\w.]*(?:Error|Exception)(?:: |$)|Node\.js v\d|(?:cat|chmod|cp|g?sed|head|ls|mkdir|mv|perl|rm|tail|tee|touch|wc): |\(eval\):\d+: |-?(?:/[\w/.-]*/)?(?:ba|da|fi|k|z)?sh: )|command not found|Python was not found`)

// stopped reports whether a script of a call did not run to its end.
func stopped(c Call) bool {
	scripts := slices.ContainsFunc(c.Operations, func(op fileop.Operation) bool { return op.Kind == fileop.Substitute || op.Kind == fileop.Run })
	return scripts && stops.MatchString(unwrap(c.Body))
}

// run applies what a script file does to other files. With All, it may not have run to its end.
func (v *Views) run(script fileop.Operation) {
	f := v.known(script.Dir, script.Path)
	if f == nil || !f.whole || len(f.regions) != 1 {
		return
	}
	text := f.regions[0].text()
	for _, op := range program.Changes(f.name, text) {
		if op.Dir = script.Dir; script.All {
			op = op.Uncertain()
		}
		v.follow(op)
	}
}

// empty forgets what is known of a file.
func (v *Views) empty(f *file) {
	v.lines -= f.size()
	*f = file{name: f.name, longest: f.longest}
}

// within visits the known files in the folder of an operation. certain is false if their folder may be a different
// one of that name.
func (v *Views) within(op fileop.Operation, visit func(f *file, certain bool)) {
	if v.scans++; v.scans > mostScans {
		return
	}
	folder := path.Clean(fileop.Slashed(op.Path))
	full := op.Full(folder)
	found := map[*file]bool{} // whether it is certain by any name
	for name, f := range v.files {
		if path.IsAbs(full) && path.IsAbs(f.longest) {
			if strings.HasPrefix(f.longest, full+"/") {
				found[f] = true
			}
			continue
		}
		certain := strings.HasPrefix(name, folder+"/")
		if certain || folder == "." || !path.IsAbs(folder) && strings.Contains(name, "/"+folder+"/") {
			found[f] = found[f] || certain
		}
	}
	for f, certain := range found {
		visit(f, certain)
	}
}

// move renames a file.
func (v *Views) move(f *file, op fileop.Operation) {
	from, to := keyOf(op.Path), keyOf(op.To)
	if f == nil {
		if other := v.known(op.Dir, to); other != nil {
			v.miss(other)
		}
		return
	}
	if v.scans++; v.scans > mostScans {
		v.empty(f)
		return
	}
	full := op.Full(to)
	if before, ok := strings.CutSuffix(fileop.Slashed(f.name), from); ok && !path.IsAbs(to) {
		to = path.Join(before, to)
	}
	if other := v.at(to, full); other != nil && other != f {
		v.empty(other)
	}
	for name, of := range v.files {
		if of != f {
			continue
		}
		delete(v.files, name)
		for end := range ends(name) {
			if v.ends[end] == f {
				delete(v.ends, end)
			}
		}
	}
	f.name, f.longest = to, ""
	f.touched, f.edited = v.now(), v.now()
	if other := v.files[to]; other != nil && v.at(to, full) != other {
		f.name = full // the name in short is of another folder's file
	} else {
		v.know(to, f)
	}
	if full != "" {
		v.know(full, f)
	}
}

// at returns the file with a name, or with the full name if that is known.
func (v *Views) at(name, full string) *file {
	if f := v.files[full]; full != "" && f != nil {
		return f
	}
	f := v.files[name]
	if f == nil || full == "" || f.longest == full || f.fits(full) {
		return f
	}
	return nil
}

// copy gives a file the lines of another one.
func (v *Views) copy(f, to *file) {
	if f == nil || len(f.regions) == 0 {
		v.miss(to)
		return
	}
	v.lines += f.size() - to.size()
	to.touched, to.edited, to.whole = v.now(), v.now(), f.whole
	to.missed, to.regions, to.sieve = slices.Clone(f.missed), nil, nil
	for _, r := range f.regions {
		to.regions = append(to.regions, region{r.from, slices.Clone(r.lines), r.bytes})
	}
}

// add appends lines to a file. They get a place only if the whole file is known.
func (v *Views) add(f *file, op fileop.Operation) {
	put := v.fresh(split(op.New), true)
	switch {
	case f.whole && len(f.regions) == 1 && strings.HasSuffix(op.New, "\n"):
		r := &f.regions[0]
		f.sieve.splice(len(r.lines), 0, put)
		r.replace(len(r.lines), len(r.lines), put)
		v.lines += len(put)
	default:
		f.whole = false
		v.show(f, regionOf(0, put))
	}
}

// seek returns the line number of lines whose place is not known, if they occur exactly once in the known
// lines; else 0. stale is set if they may be elsewhere now. Lines are not looked for where edits would be unknown changes.
func (v *Views) seek(f *file, lines []*line) (from int, stale bool) {
	if len(lines) == 0 || v.laid > mostLaid {
		return 0, false
	}
	text := region{lines: lines}
	e := edit{old: text.text(), begins: true, ends: true}
	w, placed, all := e.wanted(), f.placed(), func(*region) bool { return true }
	defer func() { v.work += int(w.read) }()
	at, ok := f.find(w, place{}, placed, all)
	if !ok {
		return 0, false
	}
	again := at
	again.line, again.column = again.line+1, 0
	if _, twice := f.find(w, again, placed, all); twice {
		return 0, false
	}
	r := &f.regions[at.region]
	known := r.lines[at.line : at.line+len(lines)]
	return r.from + at.line, f.stale(known) || f.astray(known)
}
