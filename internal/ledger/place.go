package ledger

import (
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/budget"
)

// place is where names are from: a file, what a program printed, or what was said.
type place struct {
	name  string
	short string // the end of a file's name
	// names are the headings of what is listed of it, with the name in full and in short;
	// without cost if not measured.
	names [2]budget.Piece
}

// From says where what is added next is from. The pointer is that of the call, if it is one.
func (x *Index) From(name, pointer string) {
	p := x.places[name]
	if p == nil {
		p = &place{name: strings.Clone(name)}
		p.short = ending(p.name)
		x.places[p.name] = p
	}
	x.at, x.pointer = p, pointer
}

// ending is the last two elements of a path.
func ending(path string) string {
	at := strings.LastIndexByte(path, '/')
	if at > 0 {
		at = strings.LastIndexByte(path[:at], '/')
	}
	return path[at+1:]
}

// namesHeading names a place over names.
func (x *Index) namesHeading(p *place, shown *Shown) budget.Piece {
	kept := &p.names[0]
	name := p.beside(shown)
	if name != p.name {
		kept = &p.names[1]
	}
	if kept.Cost == 0 {
		*kept = x.gauge.Piece("in " + name + ":")
	}
	return *kept
}

// mostPointers is how many of the calls whose results hold some lines are named over these.
const mostPointers = 3

// linesHeading names a place over lines, with the pointers of the newest calls that returned
// these.
func (x *Index) linesHeading(p *place, lines []*entry, shown *Shown) budget.Piece {
	text := "from " + p.beside(shown)
	var pointers []string
	for i := len(lines) - 1; i >= 0 && len(pointers) < mostPointers; i-- {
		if at := lines[i].pointer; at != "" && !slices.Contains(pointers, at) {
			pointers = append(pointers, at)
		}
	}
	for i := len(pointers) - 1; i >= 0; i-- {
		text += " " + pointers[i]
	}
	return x.gauge.Piece(text + "\n")
}

// beside is the name of a place beside a text: a file is named by the end of its name where
// the text has it in full.
func (p *place) beside(shown *Shown) string {
	if p.short != p.name && strings.Contains(shown.text, p.name) {
		return p.short
	}
	return p.name
}

// Place names where the names of a call are: the file that it is about, or the tool and the
// program that it runs.
func Place(tool, arguments string) string {
	members, ok := readArguments(arguments)
	if !ok {
		return oneLine(tool)
	}
	if script, ok := commandIn(members); ok {
		script, _, _ = strings.Cut(script, "<<")
		for _, words := range scriptWords(script) {
			if words[0] != "cd" {
				return Cut(oneLine(words[0]), 40)
			}
		}
		return oneLine(tool)
	}
	if file, ok := fileIn(members); ok {
		return oneLine(file)
	}
	return oneLine(tool)
}
