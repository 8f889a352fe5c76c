package fileview

import (
	"strings"

	"github.com/contextd/contextd/internal/fileview/fileop"
)

// parts returns for each operation the part of a result that it shows; empty if unknown. If several
// operations show something, the result is divided at lines that were printed between them, or by how many
// lines each shows.
func parts(ops []fileop.Operation, body string) []string {
	out := make([]string, len(ops))
	shows, only := 0, 0
	for i, op := range ops {
		if op.Shows() {
			shows++
			only = i
		}
	}
	switch text := unwrap(body); {
	case shows == 1:
		out[only] = text
	case shows > 1:
		d := division{ops: ops, out: out, lines: strings.Split(strings.TrimSuffix(text, "\n"), "\n")}
		d.divide()
	}
	return out
}

// division divides the lines of a result among operations.
type division struct {
	ops   []fileop.Operation
	out   []string
	lines []string
}

// divide splits the result at its marks (see mark). It leaves all parts unknown unless the marks in the
// result are those that were printed, all of them and in this order.
func (d *division) divide() {
	marks := map[string]bool{}
	for _, op := range d.ops {
		if text := mark(op); text != "" {
			marks[text] = true
		}
	}
	var places []int
	for i, line := range d.lines {
		if marks[strings.TrimSpace(line)] {
			places = append(places, i)
		}
	}
	type segment struct{ ops, lines [2]int }
	var all []segment
	at, from := 0, 0
	for i, op := range d.ops {
		text := mark(op)
		if text == "" {
			continue
		}
		if len(places) == 0 || strings.TrimSpace(d.lines[places[0]]) != text {
			return
		}
		before, after := blanks(op.New)
		to := places[0]
		for ; before > 0 && to > from && d.lines[to-1] == ""; before-- {
			to--
		}
		all = append(all, segment{[2]int{at, i}, [2]int{from, to}})
		at, from = i+1, places[0]+1
		for ; after > 0 && from < len(d.lines) && d.lines[from] == ""; after-- {
			from++
		}
		places = places[1:]
	}
	if len(places) > 0 {
		return
	}
	for _, s := range append(all, segment{[2]int{at, len(d.ops)}, [2]int{from, len(d.lines)}}) {
		d.give(s.ops[0], s.ops[1], d.lines[s.lines[0]:s.lines[1]])
	}
}

// mark is the one line that an operation prints, without the blanks around it.
func mark(op fileop.Operation) string {
	if text := strings.TrimSpace(op.New); op.Kind == fileop.Print && !strings.Contains(text, "\n") {
		return text
	}
	return ""
}

// blanks are how many empty lines a text begins and ends with.
func blanks(text string) (before, after int) {
	trimmed := strings.TrimLeft(text, "\n")
	return len(text) - len(trimmed), max(len(trimmed)-len(strings.TrimRight(trimmed, "\n"))-1, 0)
}

// give gives lines to the operations in a run of them that show something.
func (d *division) give(from, to int, lines []string) {
	var shows []int
	sum := 0
	for i := from; i < to; i++ {
		switch op := d.ops[i]; op.Kind {
		case fileop.Read, fileop.Search, fileop.Print:
			shows = append(shows, i)
			if op.Kind != fileop.Read || op.Lines == 0 {
				sum = -1
			} else if sum >= 0 {
				sum += op.Lines
			}
		}
	}
	switch {
	case len(shows) == 1:
		d.out[shows[0]] = strings.Join(lines, "\n")
	case sum == len(lines):
		for _, i := range shows {
			n := d.ops[i].Lines
			d.out[i] = strings.Join(lines[:n], "\n")
			lines = lines[n:]
		}
	}
}
