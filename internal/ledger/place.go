package ledger

import (
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/quote"
)

// place is where names come from: a file, the output of a program, or the conversation.
type place struct {
	name  string
	short string // the last two elements of a file's path
	// names caches the headings for its names, one with name and one with short. Their cost is 0 until measured.
	names [2]budget.Piece
}

// From sets the place of the texts that are added next, and the pointer of their call, if they are from a
// call.
func (x *Index) From(name, pointer string) {
	p := x.places[name]
	if p == nil {
		p = &place{name: strings.Clone(name)}
		p.short = ending(p.name)
		x.places[p.name] = p
	}
	x.at, x.pointer = p, pointer
}

// ending returns the last two elements of a path.
func ending(path string) string {
	at := strings.LastIndexByte(path, '/')
	if at > 0 {
		at = strings.LastIndexByte(path[:at], '/')
	}
	return path[at+1:]
}

// namesHeading returns the heading over the names from a place.
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

// mostPointers is the most pointers in a heading for lines.
const mostPointers = 3

// linesHeading returns the heading over lines from a place, with the pointers of the newest calls that returned
// them.
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

// beside returns the name of a place in a heading: short if the text that is shown already has the full name.
func (p *place) beside(shown *Shown) string {
	if p.short != p.name && strings.Contains(shown.text, p.name) {
		return p.short
	}
	return p.name
}

// Place returns the name of the place of a call's texts: the file in its arguments, or the program that it runs, or
// else the tool.
func Place(tool, arguments string) string {
	members, ok := readArguments(arguments)
	if !ok {
		return quote.Name(tool)
	}
	if script, ok := commandIn(members); ok {
		script, _, _ = strings.Cut(script, "<<")
		for _, words := range scriptWords(script) {
			if words[0] != "cd" {
				return Cut(quote.Line(words[0]), 40)
			}
		}
		return quote.Name(tool)
	}
	if file, ok := fileIn(members); ok {
		return quote.Line(file)
	}
	return quote.Name(tool)
}
