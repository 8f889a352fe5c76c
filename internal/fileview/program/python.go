package program

import (
	"regexp"
	"slices"

	"github.com/contextd/contextd/internal/fileview/fileop"
)

// Python are the changes that a program in Python makes to files. It is not run. Variables are followed
// where they are texts, files or what was read from these, and only by statements that run once. A file
// that is written with a text that is not known is changed; where it is not known which file that is,
// each may be that the program names.
func Python(text string) []fileop.Operation {
	p := pyProgram{cursor: cursor{tokens: scanPython(text)}, known: map[string]pyValue{}, written: map[string]int{}, used: map[int]bool{}}
	for p.at < len(p.tokens) {
		p.step(0)
	}
	return p.changes()
}

// pyProgram is what is known of one up to a place in it.
type pyProgram struct {
	cursor
	begun  int // where its statement begins
	known  map[string]pyValue
	blocks []pyBlock
	// certain is set where a statement runs once.
	certain bool
	effects []pyEffect
	written map[string]int // how often each file was, or was opened for that
	handles int
	used    map[int]bool // handles that are not at the beginning of their files, or not only
	folders []string
	built   int  // bytes
	unclear bool // it changes a file that is not known
	ends    bool // it may end early, and nothing says whether it did
}

// pyBlock are the statements after a header.
type pyBlock struct {
	indent  int
	certain bool
}

// pyEffect is what becomes of a file.
type pyEffect struct {
	path  string
	begun bool // something was written
	known bool // the edits are all
	edits []fileop.Operation
}

type pyKind uint8

// The kinds of values that are known.
const (
	pyText pyKind = iota + 1
	pyNumber
	pyFile    // its text is the file's name
	pyHandle  // a file that is open
	pyContent // what was read from a file, and edited
)

type pyValue struct {
	kind pyKind
	text string
	mode string // of a handle
	// effect is the place of what becomes of the file of a handle that writes.
	handle, effect int
	// after is how often the file had been written when it was read, or opened.
	after int
	edits *pyEdit
}

// pyEdit is the newest of some edits.
type pyEdit struct {
	op     fileop.Operation
	before *pyEdit
}

// pyHeaders are words that begin blocks, and whether these run once.
var pyHeaders = map[string]bool{"with": true, "if": false, "elif": false, "else": false, "for": false, "while": false, "def": false, "class": false, "try": false, "except": false, "finally": false, "match": false, "case": false, "async": false}

// pyPerhaps are words of statements of which parts may not run, or later.
var pyPerhaps = map[string]bool{"and": true, "or": true, "if": true, "for": true, "lambda": true, "assert": true}

// pyBinds are words after which names are given to something else.
var pyBinds = map[string]bool{"for": true, "def": true, "class": true, "except": true, "del": true, "async": true, "import": true, "from": true}

// pyWrites are methods and modules by which a file may be changed that is not known. What is written
// to a file that is open needs none of them: that it was opened is known.
var pyWrites = map[string]bool{"write_text": true, "write_bytes": true, "unlink": true, "rename": true, "shutil": true, "subprocess": true, "fileinput": true}

// pySystem are functions of os by which one may be changed.
var pySystem = map[string]bool{"replace": true, "remove": true, "system": true, "popen": true}

// pyMode is how a file is opened that is written.
var pyMode = regexp.MustCompile(`^[rbt]*[wax+][rbt+]*$`)

// step takes in a statement's beginning, a value in it, or a token that says nothing.
func (p *pyProgram) step(depth int) {
	at := p.at
	switch t := p.tokens[at]; {
	case t.kind == lineBreak:
		p.begin(len(t.text))
		return
	case p.is(at, "="):
		p.assigned()
		return
	case t.kind == word && p.is(at-1, "."):
		p.member(t.text)
	case t.kind == word && t.text == "as" && p.kind(at+1) == word:
		delete(p.known, p.tokens[at+1].text)
	case t.kind == word && (t.text == "exit" || t.text == "quit" || t.text == "SystemExit"):
		p.ends = true
	case t.kind == word && pyWrites[t.text] && p.is(at+1, "."):
		p.unclear = true
	case t.kind == word || t.kind == literal || p.is(at, "("):
		v, ok := p.sum(depth)
		if ok && p.kind(p.at) == word && p.tokens[p.at].text == "as" && p.kind(p.at+1) == word {
			p.set(p.tokens[p.at+1].text, v)
			p.at += 2
		} else if ok {
			p.use(v)
		}
	}
	p.at = max(p.at, at+1)
}

// member takes in a name after a dot, of something that is not known.
func (p *pyProgram) member(name string) {
	of := ""
	if p.kind(p.at-2) == word {
		of = p.tokens[p.at-2].text
	}
	switch {
	case pyWrites[name], of == "os" && pySystem[name]:
		p.unclear = true
	case name == "open":
		const near = 8 // tokens
		p.unclear = p.unclear || slices.ContainsFunc(p.tokens[p.at:min(p.at+near, len(p.tokens))], func(t token) bool {
			return t.kind == literal && pyMode.MatchString(t.text)
		})
	case name == "exit" || name == "_exit":
		p.ends = true
	}
}

// begin takes in the beginning of a statement.
func (p *pyProgram) begin(indent int) {
	p.at++
	if p.kind(p.at) == lineBreak || p.at == len(p.tokens) {
		return
	}
	p.begun = p.at
	p.blocks = slices.DeleteFunc(p.blocks, func(b pyBlock) bool { return b.indent >= indent })
	name := ""
	if p.kind(p.at) == word {
		name = p.tokens[p.at].text
	}
	if once, ok := pyHeaders[name]; ok {
		p.blocks = append(p.blocks, pyBlock{indent, once})
	}
	end := p.at
	for end < len(p.tokens) && p.kind(end) != lineBreak {
		end++
	}
	p.certain = !slices.ContainsFunc(p.blocks, func(b pyBlock) bool { return !b.certain }) &&
		!slices.ContainsFunc(p.tokens[p.at:end], func(t token) bool { return t.kind == word && pyPerhaps[t.text] })
	if pyBinds[name] {
		p.forget(p.at, end)
	}
	if name == "from" {
		p.imported(p.tokens[p.at+1 : end])
	}
	if name == "" || !p.is(p.at+1, "=") || p.is(p.at+2, "=") {
		return
	}
	p.at += 2
	if v, ok := p.sum(0); ok && (p.at == len(p.tokens) || p.kind(p.at) == lineBreak) {
		p.set(name, v)
	} else {
		delete(p.known, name)
	}
}

// imported takes in the words after from: functions by which a file may be changed that is not known.
func (p *pyProgram) imported(from []token) {
	if len(from) > 0 && pyWrites[from[0].text] || slices.ContainsFunc(from, func(t token) bool {
		return from[0].text == "os" && (pySystem[t.text] || pyWrites[t.text])
	}) {
		p.unclear = true
	}
}

func (p *pyProgram) set(name string, v pyValue) {
	if p.certain {
		p.known[name] = v
	} else {
		delete(p.known, name)
	}
}

// assigned takes in a mark after which something is assigned, unless it compares.
func (p *pyProgram) assigned() {
	at := p.at
	p.at++
	switch {
	case p.is(at+1, "="):
		p.at++
	case p.is(at-1, "!"), p.is(at-1, "<"), p.is(at-1, ">"):
	default:
		p.forget(p.begun, at)
		p.begun = at
	}
}

// forget forgets what is known by the words between two places.
func (p *pyProgram) forget(from, to int) {
	for _, t := range p.tokens[from:max(from, to)] {
		if t.kind == word {
			delete(p.known, t.text)
		}
	}
}

// changes are what becomes of files.
func (p *pyProgram) changes() []fileop.Operation {
	changed := map[string]bool{}
	for _, e := range p.effects {
		changed[e.path] = changed[e.path] || !e.known || p.ends
	}
	var out []fileop.Operation
	for _, e := range p.effects {
		if !changed[e.path] {
			out = append(out, e.edits...)
		}
	}
	var names []string
	for _, e := range p.effects {
		if changed[e.path] {
			names = append(names, e.path)
		}
	}
	if p.unclear {
		names = slices.Concat(names, p.folders, fileNames(p.tokens))
	}
	return append(out, fileop.Changes(names)...)
}
