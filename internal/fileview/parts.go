package fileview

import (
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/contextd/contextd/internal/fileview/fileop"
)

// parts returns for each operation the part of a result that it shows; empty if unknown. If several
// operations show something, the result is divided at lines that were printed between them, or by how many
// lines each shows.
func (v *Views) parts(ops []fileop.Operation, body string) []string {
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
		if !stops.MatchString(text) && !slices.ContainsFunc(ops, func(op fileop.Operation) bool { return !op.Shows() }) {
			d.views = v
		}
		d.divide()
	}
	return out
}

// division divides the lines of a result among operations.
type division struct {
	views *Views // what is known of the files; nil where the call may have changed that
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
		d.atSearches(s.ops[0], s.ops[1], d.lines[s.lines[0]:s.lines[1]])
	}
}

// atSearches divides lines among a run of operations at what those of them found that search many files: each
// line of that names a file. The lines are not divided unless there are as many such places as searches.
func (d *division) atSearches(from, to int, lines []string) {
	var searches []int
	for i := from; i < to; i++ {
		if op := d.ops[i]; op.Kind == fileop.Search && op.Path == "" {
			searches = append(searches, i)
		}
	}
	var runs [][2]int
	for i := 0; i < len(lines) && len(runs) <= len(searches); i++ {
		end := i
		for end < len(lines) && (namesFile(lines[end]) || end > i && lines[end] == "--") {
			end++
		}
		if end > i {
			runs = append(runs, [2]int{i, end})
			i = end
		}
	}
	open := func(run [2]int) bool { // whether more may have been found
		return run[0] > 0 && lines[run[0]-1] == hole || run[1] < len(lines) && lines[run[1]] == hole
	}
	if len(searches) == 0 || len(runs) != len(searches) || slices.ContainsFunc(runs, open) {
		d.give(from, to, lines)
		return
	}
	type part struct{ ops, lines [2]int }
	var between []part
	op, at := from, 0
	for i, run := range append(runs, [2]int{len(lines), len(lines)}) {
		p := part{[2]int{op, to}, [2]int{at, run[0]}}
		if i < len(searches) {
			p.ops[1] = searches[i]
		}
		if at < run[0] && !slices.ContainsFunc(d.ops[p.ops[0]:p.ops[1]], fileop.Operation.Shows) {
			d.give(from, to, lines)
			return
		}
		between = append(between, p)
		op, at = p.ops[1]+1, run[1]
	}
	for i, p := range between {
		d.give(p.ops[0], p.ops[1], lines[p.lines[0]:p.lines[1]])
		if i < len(searches) {
			d.out[searches[i]] = ended(lines[runs[i][0]:runs[i][1]])
		}
	}
}

// namesFile reports whether a line is one that a search of many files found: it begins with a file's name and
// the line's number.
func namesFile(line string) bool {
	m := match.FindStringSubmatch(line)
	return len(m) > 0 && strings.ContainsAny(m[1], "./") && !strings.ContainsAny(m[1], "{}()<>\"' ")
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

// share is what an operation shows of a run of lines: how many at least and at the most, and which.
type share struct {
	op          int
	least, most int
	lines       []string
	known       bool // which lines
}

// give gives lines to the operations in a run of them that show something.
func (d *division) give(from, to int, lines []string) {
	var shares []share
	most := 0
	for i := from; i < to; i++ {
		if op := d.ops[i]; op.Shows() {
			s := share{op: i, most: math.MaxInt32}
			if op.Kind == fileop.Read && op.Lines > 0 {
				s.most = op.Lines
			}
			most = min(most+s.most, math.MaxInt32)
			shares = append(shares, s)
		}
	}
	switch {
	case len(shares) == 1:
		if len(lines) <= shares[0].most {
			d.out[shares[0].op] = ended(lines)
		}
		return
	case most == len(lines):
		for i := range shares {
			shares[i].least = shares[i].most
		}
	case d.views == nil:
		return
	default:
		for i := range shares {
			d.bound(&shares[i])
		}
	}
	if !d.allot(shares, lines) {
		return
	}
	for _, s := range shares {
		if s.known {
			d.out[s.op] = ended(s.lines)
		}
	}
}

// ended are lines as a text.
func ended(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

// bound sets how many lines an operation shows at least, by what is known of the length of its file.
func (d *division) bound(s *share) {
	op := d.ops[s.op]
	if f := d.views.known(op.Dir, op.Path); op.Kind == fileop.Read && op.From > 0 && f != nil && len(f.missed) == 0 {
		placed := f.placed()
		if placed == 0 {
			return
		}
		s.least = within(f.regions[placed-1].end()-op.From, s.most)
		if f.whole && len(f.regions) == 1 {
			s.most = s.least
		}
	}
}

// within is how many lines are shown of so many that follow the first.
func within(lines, most int) int { return max(0, min(lines, most)) }

// allot gives lines to the operations of which it is certain how many lines they and all before them show, or
// they and all after them; and what is between those to the one operation that is between them, or to those
// that read the same file. It returns false if that contradicts what is known of the files.
func (d *division) allot(shares []share, lines []string) bool {
	first, last := 0, len(shares)
	take := func(s *share, n int) { s.lines, lines, s.known = lines[:n], lines[n:], true }
	for ; first < last && shares[first].least == shares[first].most && shares[first].most <= len(lines); first++ {
		take(&shares[first], shares[first].most)
	}
	for last > first && shares[last-1].least == shares[last-1].most && shares[last-1].most <= len(lines) {
		last--
		n := len(lines) - shares[last].most
		shares[last].lines, lines, shares[last].known = lines[n:], lines[:n], true
	}
	for i := range shares {
		if shares[i].known && !d.agrees(shares[i], i >= last && first < last) {
			return false
		}
	}
	switch between := shares[first:last]; {
	case len(between) == 0:
		return len(lines) == 0
	case len(between) == 1:
		if n := len(lines); between[0].least <= n && n <= between[0].most {
			take(&between[0], n)
		}
	default:
		end, ok := d.end(between, len(lines))
		for i := range between {
			if ok {
				take(&between[i], within(end-d.ops[between[i].op].From+1, between[i].most))
			}
		}
	}
	for i := first; i < last; i++ {
		if shares[i].known && !d.agrees(shares[i], false) {
			return false
		}
	}
	return true
}

// end is the last line of a file of which operations show so many lines together; false if they do not all
// read one file, or there is no such line.
func (d *division) end(shares []share, lines int) (int, bool) {
	files := map[*file]bool{}
	most := 0  // no line of the file after this one makes a difference
	after := 0 // the last line that was asked for so far; what a harness trims is at the end
	for _, s := range shares {
		op := d.ops[s.op]
		if op.Kind != fileop.Read || op.From == 0 || op.From < after {
			return 0, false
		}
		after = op.From + s.most - 1
		f := d.views.known(op.Dir, op.Path)
		if f == nil {
			f = d.views.file(op.Dir, op.Path)
		}
		files[f] = true
		most = max(most, op.From+min(s.most, lines))
	}
	if len(files) != 1 {
		return 0, false
	}
	sum := func(end int) int {
		n := 0
		for _, s := range shares {
			n += within(end-d.ops[s.op].From+1, s.most)
		}
		return n
	}
	end := sort.Search(most, func(end int) bool { return sum(end) >= lines })
	short := slices.ContainsFunc(shares, func(s share) bool { return within(end-d.ops[s.op].From+1, s.most) < s.least })
	return end, sum(end) == lines && !short
}

// agrees reports whether the lines given to an operation are those of the file as far as these are known. With
// certain, some must be known.
func (d *division) agrees(s share, certain bool) bool {
	op := d.ops[s.op]
	if d.views == nil || op.Kind != fileop.Read {
		return !certain
	}
	f := d.views.known(op.Dir, op.Path)
	if f == nil {
		return !certain
	}
	same, others, certainly := 0, 0, !certain
	for _, part := range parseShown(ended(s.lines), op.From) {
		for _, r := range f.regions[:f.placed()] {
			for n := max(r.from, part.from); n < min(r.end(), part.from+len(part.lines)); n++ {
				text := strings.TrimSuffix(part.lines[n-part.from], "\r")
				if r.lines[n-r.from].text != text {
					others++
					continue
				}
				same++
				certainly = certainly || len(strings.TrimSpace(text)) >= leastLine
			}
		}
	}
	return others <= same/8 && certainly
}
