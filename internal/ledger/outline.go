package ledger

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/contextd/contextd/internal/budget"
)

const (
	// outlineLine is the length in bytes to which a line of an outline is cut.
	outlineLine = 160
	// outlineScan bounds how much of a body is looked at.
	outlineScan = 256 << 10
)

// Outline returns the most informative lines of body, in their order, in at most limit tokens: those with the most
// names per byte, not counting names of lines that were already picked. The result is empty if no line is worth
// showing.
func Outline(body string, limit uint64, gauge budget.Gauge) string {
	lines := outlineLines(cutLine(body, outlineScan))
	slices.SortStableFunc(lines, func(a, b outlined) int {
		return cmp.Compare(b.score, a.score)
	})
	seen := map[string]bool{}
	var picked []outlined
	var used uint64
	for _, l := range lines {
		fresh := 0
		for _, name := range l.names {
			if !seen[name] {
				fresh++
			}
		}
		if fresh == 0 {
			continue
		}
		cost := gauge.Text(l.text) + 1
		if used+cost > limit {
			if used+limit/8 >= limit {
				break
			}
			continue
		}
		used += cost
		for _, name := range l.names {
			seen[name] = true
		}
		picked = append(picked, l)
	}
	slices.SortFunc(picked, func(a, b outlined) int { return cmp.Compare(a.at, b.at) })
	var out strings.Builder
	for i, l := range picked {
		if i > 0 {
			out.WriteByte('\n')
		}
		out.WriteString(l.text)
	}
	return out.String()
}

type outlined struct {
	at    int // line number
	text  string
	names []string
	score int
}

// outlineLines returns the lines with names, with a score of names per byte.
func outlineLines(body string) []outlined {
	var lines []outlined
	at := 0
	for line := range strings.SplitSeq(body, "\n") {
		at++
		text := cutLine(strings.TrimRight(line, " \t\r"), outlineLine)
		var names []string
		Identifiers(text, func(start, end int) bool {
			names = append(names, text[start:end])
			return true
		})
		if len(names) == 0 {
			continue
		}
		// A line costs its bytes, and a little for being a line.
		score := 1000 * len(names) / (len(text) + 24)
		lines = append(lines, outlined{at, text, names, score})
	}
	return lines
}

// cutLine shortens a line to at most n bytes, between runes.
func cutLine(line string, n int) string {
	if len(line) <= n {
		return line
	}
	for n > 0 && !utf8.RuneStart(line[n]) {
		n--
	}
	return line[:n]
}
