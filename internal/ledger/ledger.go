package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Call is a tool call that left the context.
type Call struct {
	Tool, Arguments string
	Outcome         Outcome
	// Pointer names the result, or is empty if there is none.
	Pointer string
}

// Outcome says how a call ended.
type Outcome uint8

// The outcomes of a call.
const (
	OK Outcome = iota
	Failed
	Interrupted
)

func (o Outcome) String() string {
	switch o {
	case Failed:
		return "error"
	case Interrupted:
		return "interrupted"
	default:
		return "ok"
	}
}

// Write lists the calls, oldest first, in at most limit tokens as count measures
// them. Every call is counted exactly, whatever the limit. The rule for
// shortening: repeats of a call with the same outcome are one line with their
// number; then, from the oldest on, lines lose their arguments and become one
// line per tool; if that is still too long, one line for all. The last resort is
// one line even where limit is smaller.
func Write(calls []Call, limit uint64, count func(string) uint64) string {
	if len(calls) == 0 {
		return ""
	}
	lines := merge(calls)
	// The most lines in full that fit: more lines in full are never shorter, but
	// for a few bytes, so a binary search finds them.
	full := searchMost(len(lines), func(n int) bool { return count(compose(lines, n)) <= limit })
	if text := compose(lines, full); full > 0 || count(text) <= limit {
		return text
	}
	return summary("earlier calls", lines) + "\n"
}

// searchMost returns the greatest n in [0, most] for which fits holds, given that
// it holds for all smaller ones.
func searchMost(most int, fits func(int) bool) int {
	low, high := 0, most+1 // fits(low) is taken as given
	for high-low > 1 {
		mid := (low + high) / 2
		if fits(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// line is one or more calls that read the same.
type line struct {
	tool, arguments string
	outcome         Outcome
	pointer         string // of the newest
	times           int
}

// merge joins repeats into the line of the newest one.
func merge(calls []Call) []line {
	type key struct {
		tool, arguments string
		outcome         Outcome
	}
	at := make(map[key]int, len(calls))
	lines := make([]line, 0, len(calls))
	for i := len(calls) - 1; i >= 0; i-- {
		c := calls[i]
		arguments := Shorten(c.Arguments)
		k := key{c.Tool, arguments, c.Outcome}
		if j, ok := at[k]; ok {
			lines[j].times++
			continue
		}
		at[k] = len(lines)
		lines = append(lines, line{c.Tool, arguments, c.Outcome, c.Pointer, 1})
	}
	slices.Reverse(lines)
	return lines
}

// compose writes the newest full lines whole and the others as one line a tool.
func compose(lines []line, full int) string {
	var out strings.Builder
	short := lines[:len(lines)-full]
	byTool := map[string][]line{}
	var tools []string
	for _, l := range short {
		if _, ok := byTool[l.tool]; !ok {
			tools = append(tools, l.tool)
		}
		byTool[l.tool] = append(byTool[l.tool], l)
	}
	slices.SortStableFunc(tools, func(a, b string) int {
		return cmp.Compare(times(byTool[b]), times(byTool[a]))
	})
	for _, tool := range tools {
		out.WriteString(summary(tool, byTool[tool]))
		out.WriteByte('\n')
	}
	for _, l := range lines[len(lines)-full:] {
		out.WriteString(l.String())
		out.WriteByte('\n')
	}
	return out.String()
}

func (l line) String() string {
	s := l.tool
	if l.arguments != "" {
		s += " " + l.arguments
	}
	s += " → " + l.outcome.String()
	if l.times > 1 {
		s += fmt.Sprintf(" ×%d", l.times)
	}
	if l.pointer != "" {
		s += " " + l.pointer
	}
	return s
}

// summary is one line for many calls.
func summary(name string, lines []line) string {
	var by [3]int
	for _, l := range lines {
		by[l.outcome] += l.times
	}
	s := fmt.Sprintf("%s ×%d", name, times(lines))
	for outcome := Failed; outcome <= Interrupted; outcome++ {
		if by[outcome] > 0 {
			s += fmt.Sprintf(", %d %s", by[outcome], outcome)
		}
	}
	return s
}

func times(lines []line) int {
	n := 0
	for _, l := range lines {
		n += l.times
	}
	return n
}
