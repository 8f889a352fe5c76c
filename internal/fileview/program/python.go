package program

import (
	"regexp"
	"slices"

	"github.com/contextd/contextd/internal/fileview/fileop"
)

// Python returns the changes that a Python program makes to files. It follows variables that hold texts, files
// or contents of files, as long as only statements that run once assign them. A file written with an unknown
// text counts as changed. Where it is unknown which file is written, all that the program names count as
// changed.
func Python(text string) []fileop.Operation {
	p := pyProgram{cursor: cursor{tokens: scanPython(text)}, known: map[string]pyValue{}, written: map[string]int{}, used: map[int]bool{}}
	for p.at < len(p.tokens) {
		p.step(0)
	}
	return p.changes()
}

// pyProgram is what is known of a program up to a place in it.
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

// pyBlock is the block of statements under a header.
type pyBlock struct {
	indent  int
	certain bool
}

// pyEffect is what the program does to a file.
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
	// effect is the index of the file's entry in pyProgram.effects, for a handle that writes.
	handle, effect int
	// after is how often the file had been written when it was read or opened.
	after int
	edits *pyEdit
}

// pyEdit is the newest edit of a list, linked to those before.
type pyEdit struct {
	op     fileop.Operation
	before *pyEdit
}

// pyHeaders are the words that begin blocks; true for blocks that run once.
var pyHeaders = map[string]bool{"with": true, "if": false, "elif": false, "else": false, "for": false, "while": false, "def": false, "class": false, "try": false, "except": false, "finally": false, "match": false, "case": false, "async": false}

// pyPerhaps are words of statements that may run in part only, or later.
var pyPerhaps = map[string]bool{"and": true, "or": true, "if": true, "for": true, "lambda": true, "assert": true}

// pyBinds are words that bind the names after them to other values.
var pyBinds = map[string]bool{"for": true, "def": true, "class": true, "except": true, "del": true, "async": true, "import": true, "from": true}

// pyWrites are methods and modules that may change a file that is unknown. Writing to an open file is not among
// them: its opening is recorded.
var pyWrites = map[string]bool{"write_text": true, "write_bytes": true, "unlink": true, "rename": true, "shutil": true, "subprocess": true, "fileinput": true}

// pySystem are functions of os that may change such a file.
var pySystem = map[string]bool{"replace": true, "remove": true, "system": true, "popen": true}

// pyMode matches the modes in which a file is opened for writing.
var pyMode = regexp.MustCompile(`^[rbt]*[wax+][rbt+]*$`)

// step reads the beginning of a statement, a value in it, or a token of no interest.
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

// member reads a name after a dot, of an unknown value.
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

// begin reads the beginning of a statement.
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

// imported reads the words after from. Imported functions may change files that are unknown.
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

// assigned reads an equals sign: it assigns, unless it is a part of a comparison.
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

// forget forgets the values of all names between two places.
func (p *pyProgram) forget(from, to int) {
	for _, t := range p.tokens[from:max(from, to)] {
		if t.kind == word {
			delete(p.known, t.text)
		}
	}
}

// changes returns what the program does to files.
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
