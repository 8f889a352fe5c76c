package fileview

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/quote"
)

const (
	// mostFiles is how many files are considered, the newest ones.
	mostFiles = 24
	// blockLines is how many lines are shown or omitted together: an edit needs the lines around it.
	blockLines = 8
	// nearEdit is how many lines from an edit count as near it.
	nearEdit = 12
	// narrowSpan: a call that showed fewer lines asked for just these, not for the whole file.
	narrowSpan = 150
	// leastLine: a shorter line, in bytes, is of no use by itself.
	leastLine = 12
	// longestLine: a longer line, in bytes, is not edited as a line and never shown.
	longestLine = 1000
)

// Parameters of worth, measured on recorded sessions. A line's worth is halved by ageHalf calls since it
// was shown, and by fileHalf files touched since. A name in the line that the agent wrote adds nameWorth
// times the worth, half of that if the name was last written nameHalf texts ago.
const (
	ageHalf   = 25
	fileHalf  = 4
	nameHalf  = 60
	nameWorth = 6
)

// block are lines of a region that are shown or left out together.
type block struct {
	file, region, from, to int
	worth, cost            uint64
}

// Ages returns how many texts ago the agent last wrote a name that is in the text; -1 is never.
type Ages func(text string) int

// Write shows the lines that are most likely to be needed again, in at most limit tokens, grouped by file:
// the file touched last at the end, each with the pointers to the calls that showed the lines. Runs of
// lines are fenced as in Markdown: see EndFence.
func (v *Views) Write(limit uint64, gauge budget.Gauge, ages Ages) []budget.Piece {
	files := v.newest()
	files = files[:min(len(files), mostFiles)]
	var blocks []block
	for i, f := range files {
		for n := range f.regions {
			blocks = v.blocks(blocks, files, i, n, gauge, ages)
		}
	}
	slices.SortStableFunc(blocks, func(a, b block) int {
		return cmp.Or(cmp.Compare(b.worth*a.cost, a.worth*b.cost), cmp.Compare(a.file, b.file), cmp.Compare(a.region, b.region), cmp.Compare(a.from, b.from))
	})
	picked := pick(blocks, limit, gauge)
	for {
		out := v.pieces(files, picked, gauge)
		if gauge.Sum(out...).Tokens() <= limit {
			return out
		}
		picked = picked[:len(picked)-1]
	}
}

// pick selects the blocks that fit, in their order, with an estimate for their headings.
func pick(blocks []block, limit uint64, gauge budget.Gauge) []block {
	const fileHeading, fences = 25, 6 // tokens
	var picked []block
	var cost uint64
	named := map[int]bool{}
	for _, b := range blocks {
		heading := uint64(fences)
		if !named[b.file] {
			heading += fileHeading
		}
		if gauge.Tokens(cost+b.cost)+heading <= limit {
			limit -= heading
			cost += b.cost
			named[b.file] = true
			picked = append(picked, b)
		}
	}
	return picked
}

// blocks appends those of a region that may be shown.
func (v *Views) blocks(out []block, files []*file, i, n int, gauge budget.Gauge, ages Ages) []block {
	f := files[i]
	lines := f.regions[n].lines
	near := nearEdits(lines)
	for from := 0; from < len(lines); from += blockLines {
		b := block{file: i, region: n, from: from, to: min(from+blockLines, len(lines))}
		for at := b.from; at < b.to; at++ {
			l := lines[at]
			if len(l.text) > longestLine || strings.ContainsAny(l.text, "\r\v\f\u0085\u2028\u2029") {
				b.worth = 0
				break
			}
			if l.cost == 0 {
				l.cost = gauge.Piece(l.text + "\n").Cost
			}
			b.cost += l.cost
			if len(strings.TrimSpace(l.text)) >= leastLine {
				b.worth += v.worth(l, near[at], ages)
			}
		}
		b.worth = b.worth * fileHalf / uint64(fileHalf+i)
		if f.edited > 0 {
			b.worth *= 2
		}
		if b.worth > 0 {
			out = append(out, b)
		}
	}
	return out
}

// worth estimates how likely a line is to be needed again, relative to others.
func (v *Views) worth(l *line, near bool, ages Ages) uint64 {
	const scale = 1 << 16
	w := uint64(scale * ageHalf / (ageHalf + v.now() - l.touched))
	if near {
		w *= 2
	}
	if l.span < narrowSpan {
		w *= 2
	}
	if l.again {
		w += w / 2
	}
	if age := ages(l.text); age >= 0 {
		w += nameWorth * w * nameHalf / uint64(nameHalf+age)
	}
	return w
}

// nearEdits says for each line whether an edit wrote it or a line near it.
func nearEdits(lines []*line) []bool {
	near := make([]bool, len(lines))
	until := -1
	for i := range lines {
		if lines[i].edited > 0 {
			for n := max(0, i-nearEdit, until+1); n < i; n++ {
				near[n] = true
			}
			until = i + nearEdit
		}
		near[i] = near[i] || i <= until
	}
	return near
}

// pieces shows blocks, whatever their order.
func (v *Views) pieces(files []*file, picked []block, gauge budget.Gauge) []budget.Piece {
	picked = slices.Clone(picked)
	slices.SortFunc(picked, func(a, b block) int {
		return cmp.Or(cmp.Compare(b.file, a.file), cmp.Compare(a.region, b.region), cmp.Compare(a.from, b.from))
	})
	var out []budget.Piece
	for len(picked) > 0 {
		n := 1
		for n < len(picked) && picked[n].file == picked[0].file {
			n++
		}
		out = append(out, gauge.Piece(v.heading(files[picked[0].file], picked[:n])))
		for i := 0; i < n; {
			b := picked[i]
			for i++; i < n && picked[i].region == b.region && picked[i].from == b.to; i++ {
				b.to = picked[i].to
			}
			out = append(out, gauge.Piece(files[b.file].regions[b.region].fenced(b.from, b.to)))
		}
		picked = picked[n:]
	}
	return out
}

// fenced returns lines of a region between fences. The opening fence carries the number of the first line, if
// known.
func (r *region) fenced(from, to int) string {
	var text strings.Builder
	for _, l := range r.lines[from:to] {
		text.WriteString(l.text + "\n")
	}
	fence := fenceOf(text.String())
	begin := fence + "@"
	if r.from > 0 {
		begin += strconv.Itoa(r.from + from)
	}
	return begin + "\n" + text.String() + fence + "\n"
}

// heading names a file, the newest calls that showed or wrote the lines below, and calls that changed the file in
// unknown ways after the oldest of them: those of which no line is below, and those of which it is not known where
// theirs belong.
func (v *Views) heading(f *file, shown []block) string {
	const most = 3 // calls
	var calls []int
	oldest := v.now()
	for _, b := range shown {
		for _, l := range f.regions[b.region].lines[b.from:b.to] {
			calls = append(calls, l.touched)
			oldest = min(oldest, l.touched)
		}
	}
	slices.Sort(calls)
	calls = slices.Compact(calls)
	var hidden, unplaced []int
	for _, call := range f.missed {
		if _, shown := slices.BinarySearch(calls, call); call > oldest && shown {
			unplaced = append(unplaced, call)
		} else if call > oldest {
			hidden = append(hidden, call)
		}
	}
	text := asName(f.name) + " (" + v.named(calls, most)
	if len(hidden) > 0 {
		text += "; changed since by " + v.named(hidden, most) + ", not shown here"
	}
	if len(unplaced) > 0 {
		text += "; changed at an unknown place by " + v.named(unplaced, most)
	}
	return text + ")\n"
}

// named returns the pointers of the newest of some calls.
func (v *Views) named(calls []int, most int) string {
	slices.Sort(calls)
	calls = slices.Compact(calls)
	var out []string
	for _, call := range calls[max(0, len(calls)-most):] {
		if at := v.pointers[call-1]; at != "" {
			out = append(out, at)
		}
	}
	return strings.Join(out, " ")
}

// asName returns the name of a file, quoted if it could be mistaken for other parts of a digest: a fence, a
// quotation, a notice, more lines or somebody's words.
func asName(name string) string {
	posed := slices.ContainsFunc([]string{"`", "~~~", `"`, "[contextd", "> ", "# ", "- "}, func(begin string) bool { return strings.HasPrefix(name, begin) })
	if posed || strings.Contains(name, ": ") || strings.HasSuffix(name, ":") || strings.ContainsFunc(name, quote.Unseen) {
		return strconv.Quote(name)
	}
	return name
}
