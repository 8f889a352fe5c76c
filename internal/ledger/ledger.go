// Package ledger writes down, in few tokens, what was dropped from the context: a line for
// every tool call, an index of its identifiers, and the most informative lines of a result.
// No model takes part, and the same input gives the same bytes.
package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Call is a tool call that was dropped from the context. Arguments are written as they are
// here: see Shorten.
type Call struct {
	Tool, Arguments string
	// Detail is the arguments with more room, for as long as the call is among the
	// newest; empty is the same as Arguments. See the function Detail.
	Detail  string
	Outcome Outcome
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

// detailShare is the part of the limit that the newest calls may take in detail:
// what an agent wrote last it is most likely to write again.
const detailShare = 70 // percent

// Write lists the calls, oldest first, in at most limit tokens as count measures
// them, the newest in detail as far as those take at most detailShare of
// it. Every call is counted exactly, whatever the limit. The rule for
// shortening: repeats of a call with the same outcome are one line with their
// number; then, from the oldest on, lines lose their arguments and become one
// line per tool; if that is still too long, one line for all. The last resort is
// one line even where limit is smaller.
func Write(calls []Call, limit uint64, count func(string) uint64) string {
	if len(calls) == 0 {
		return ""
	}
	lines := merge(calls)
	detail(lines, limit, count)
	totals := addUp(lines)
	// More lines in full are never shorter, but for a few bytes, so a binary search
	// finds how many fit. No line is less than a token.
	most := min(len(lines), int(min(limit, uint64(len(lines)))))
	full := searchMost(most, func(n int) bool { return count(compose(lines, totals, n)) <= limit })
	if text := compose(lines, totals, full); full > 0 || count(text) <= limit {
		return text
	}
	var all tally
	for _, t := range totals {
		for outcome, n := range t.by {
			all.by[outcome] += n
		}
	}
	return all.summary("earlier calls") + "\n"
}

// detail gives the newest lines their arguments in detail.
func detail(lines []line, limit uint64, count func(string) uint64) {
	room := limit/100*detailShare + limit%100*detailShare/100
	for i := len(lines) - 1; i >= 0; i-- {
		l := lines[i]
		if l.detail != "" {
			l.arguments = l.detail
		}
		cost := count(l.String() + "\n")
		if cost > room {
			return
		}
		room -= cost
		lines[i] = l
	}
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
	detail          string // of the newest, as is the pointer
	outcome         Outcome
	pointer         string
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
		k := key{c.Tool, c.Arguments, c.Outcome}
		if j, ok := at[k]; ok {
			lines[j].times++
			continue
		}
		at[k] = len(lines)
		lines = append(lines, line{c.Tool, c.Arguments, c.Detail, c.Outcome, c.Pointer, 1})
	}
	slices.Reverse(lines)
	return lines
}

// tally counts the calls of one tool by outcome.
type tally struct {
	tool string
	by   [Interrupted + 1]int
}

func (t tally) times() int {
	n := 0
	for _, k := range t.by {
		n += k
	}
	return n
}

// addUp counts all lines by tool, in the order of the tools' first lines.
func addUp(lines []line) []tally {
	at := map[string]int{}
	var totals []tally
	for _, l := range lines {
		i, ok := at[l.tool]
		if !ok {
			i = len(totals)
			at[l.tool] = i
			totals = append(totals, tally{tool: l.tool})
		}
		totals[i].by[l.outcome] += l.times
	}
	return totals
}

// compose writes the newest full lines whole and the others as one line a tool,
// the tools with the most calls first.
func compose(lines []line, totals []tally, full int) string {
	whole := lines[len(lines)-full:]
	rest := slices.Clone(totals)
	for _, t := range addUp(whole) {
		i := slices.IndexFunc(rest, func(r tally) bool { return r.tool == t.tool })
		for outcome, n := range t.by {
			rest[i].by[outcome] -= n
		}
	}
	slices.SortStableFunc(rest, func(a, b tally) int { return cmp.Compare(b.times(), a.times()) })
	var out strings.Builder
	for _, t := range rest {
		if t.times() > 0 {
			out.WriteString(t.summary(t.tool))
			out.WriteByte('\n')
		}
	}
	for _, l := range whole {
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
func (t tally) summary(name string) string {
	s := fmt.Sprintf("%s ×%d", name, t.times())
	for outcome := Failed; outcome <= Interrupted; outcome++ {
		if t.by[outcome] > 0 {
			s += fmt.Sprintf(", %d %s", t.by[outcome], outcome)
		}
	}
	return s
}
