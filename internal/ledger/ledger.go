// Package ledger records in few tokens what was dropped from a context: a line for every tool call, an index of the
// names in the dropped text, and the most informative lines of a result. It uses no model, and the same input gives
// the same bytes.
package ledger

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/quote"
)

// Call is a tool call that was dropped from the context. Arguments are written as given: Shorten makes them
// short.
type Call struct {
	Tool, Arguments string
	// Detail is a longer form of the arguments, shown while the call is among the newest; empty is the same as
	// Arguments. See the function Detail.
	Detail string
	// Members, if not nil, replace Arguments and Detail. Members that most calls of a tool share are
	// written once. See the function Members.
	Members []Member
	Outcome Outcome
	// Pointer is the pointer to the result; empty if there is no result.
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

// detailShare is the part of the limit that the newest calls may take in detail, because an agent is most likely to
// write again what it wrote last.
const detailShare = 70 // percent

// Calls are the calls of a ledger. Add merges repeated calls, and the costs of lines are cached, so that Write with
// another limit only adds up sizes.
type Calls struct {
	gauge budget.Gauge
	n     int
	// lines are in the order of their newest calls. A line that was merged into a newer one has times 0.
	lines []line
	at    map[callKey]int
	tools map[string]int // tool → its number
	uses  []use          // by the number of the tool
	// odd is set if costs of lines do not add up exactly: a line may cost less after another.
	odd bool
}

// NewCalls returns a ledger of no calls.
func NewCalls(gauge budget.Gauge) *Calls {
	return &Calls{gauge: gauge, at: map[callKey]int{}, tools: map[string]int{}}
}

// Write lists calls like Calls.Write.
func Write(calls []Call, limit uint64, gauge budget.Gauge) []budget.Piece {
	c := NewCalls(gauge)
	for _, call := range calls {
		c.Add(call)
	}
	return c.Write(limit)
}

// Len returns how many calls there are.
func (c *Calls) Len() int { return c.n }

// Add appends the next call.
func (c *Calls) Add(call Call) {
	l := line{callKey: callKey{quote.Name(call.Tool), call.Arguments, call.Outcome}, detail: call.Detail, members: call.Members, pointer: call.Pointer, times: 1}
	if i, ok := c.at[l.callKey]; ok {
		l.times += c.lines[i].times
		c.lines[i] = line{}
	}
	var ok bool
	if l.number, ok = c.tools[l.tool]; !ok {
		l.number = len(c.tools)
		c.tools[l.tool] = l.number
		c.uses = append(c.uses, newUse())
		c.odd = c.odd || l.tool == "" || !budget.Adds("\n", l.tool)
	}
	c.n++
	c.uses[l.number].add(call.Members)
	c.at[l.callKey] = len(c.lines)
	c.lines = append(c.lines, l)
}

// Write lists the calls, oldest first, in at most limit tokens. The newest are in detail, as many as fit in
// detailShare of the limit. Every call is counted exactly, whatever the limit. Lists are shortened in these steps:
//   - Repeated calls with the same outcome are one line with their number.
//   - From the oldest on, lines lose their arguments and become one line for each tool.
//   - The tools with few calls share a line.
//   - In the end there is one line, even if limit is smaller.
func (c *Calls) Write(limit uint64) []budget.Piece {
	if c.n == 0 {
		return nil
	}
	lines := c.merged()
	c.detail(lines, limit)
	fits := func(n int) bool { return c.mayFit(lines[:len(lines)-n], limit) && c.size(lines, n) <= limit }
	// With more lines in full the text is never shorter, except by a few bytes, so a binary search finds how many
	// fit. No line is less than a token.
	most := min(len(lines), int(min(limit, uint64(len(lines)))))
	if full := searchMost(most, fits); full > 0 || fits(0) {
		return slices.Concat(c.summaries(lines[:len(lines)-full]), c.usual(lines[len(lines)-full:]), c.inFull(lines[len(lines)-full:]))
	}
	totals := c.totals(lines)
	return c.most(totals, searchMost(min(len(totals)-1, mostTools(limit)), func(n int) bool { return c.gauge.Sum(c.most(totals, n)...).Tokens() <= limit }))
}

// mostTools returns a number of tools whose lines are certainly over a limit if there are more: a line is more than half
// a token.
func mostTools(limit uint64) int { return 2 * int(min(limit, math.MaxInt32/2)) }

// mayFit reports whether some lines may fit in limit tokens with one line for each tool. It measures nothing, because
// there may be many thousand tools.
func (c *Calls) mayFit(lines []shownLine, limit uint64) bool {
	if len(c.tools) <= mostTools(limit) {
		return true
	}
	tools, seen := 0, make([]bool, len(c.tools))
	for i := range lines {
		if n := lines[i].number; !seen[n] {
			seen[n] = true
			tools++
		}
	}
	return tools <= mostTools(limit)
}

// most returns the lines of the first n tools, and one for all others.
func (c *Calls) most(totals []tally, n int) []budget.Piece {
	rest := tally{tool: "earlier calls"}
	if n > 0 {
		rest.tool = "other tools"
	}
	for _, t := range totals[n:] {
		for outcome, times := range t.by {
			rest.by[outcome] += times
		}
	}
	return append(c.summed(totals[:n]), c.gauge.Piece(rest.summary()))
}

// merged returns the lines that have calls, with short arguments.
func (c *Calls) merged() []shownLine {
	lines := make([]shownLine, 0, len(c.at))
	for i := range c.lines {
		if l := &c.lines[i]; l.times > 0 {
			lines = append(lines, c.inShort(l))
		}
	}
	return lines
}

// measure returns a line written with some arguments. Its cost is cached in *cost.
func (c *Calls) measure(l *line, cost *uint64, arguments string) shownLine {
	shown := shownLine{l, arguments, *cost}
	if *cost == 0 {
		*cost = c.gauge.Piece(shown.String()).Cost
		shown.cost = *cost
	}
	return shown
}

// detail gives the newest lines their arguments in detail.
func (c *Calls) detail(lines []shownLine, limit uint64) {
	room := limit/100*detailShare + limit%100*detailShare/100
	for i := len(lines) - 1; i >= 0; i-- {
		l := c.inDetail(lines[i])
		tokens := c.gauge.Tokens(l.cost)
		if tokens > room {
			return
		}
		room -= tokens
		lines[i] = l
	}
}

// size returns the size of the text, in tokens, with the last full of the lines in full.
func (c *Calls) size(lines []shownLine, full int) uint64 {
	sum := c.gauge.Sum(c.summaries(lines[:len(lines)-full])...)
	whole := lines[len(lines)-full:]
	for _, p := range c.usual(whole) {
		sum.Add(p)
	}
	if c.odd {
		for _, p := range c.inFull(whole) {
			sum.Add(p)
		}
	} else if full > 0 {
		all := budget.Piece{Text: whole[0].tool} // the costs of lines add up after the text that they begin with
		for i := range whole {
			all.Cost += whole[i].cost
		}
		sum.Add(all)
	}
	return sum.Tokens()
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

// callKey identifies calls that are merged into one line.
type callKey struct {
	tool, arguments string
	outcome         Outcome
}

// line is one or more calls with the same line.
type line struct {
	callKey
	number          int    // of the tool
	detail, pointer string // of the newest call
	members         []Member
	times           int
	// cost and detailCost are the costs of the line in short and in detail; 0 if not measured.
	cost, detailCost uint64
	// short and long are members written in short and in detail, next to the usual arguments beside.
	beside, short, long string
}

// shownLine is a line with its arguments in the form to show.
type shownLine struct {
	*line
	arguments string
	cost      uint64
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

// summaries returns one line for each tool.
func (c *Calls) summaries(lines []shownLine) []budget.Piece { return c.summed(c.totals(lines)) }

// totals counts the calls of each tool: those with the most calls first, ties in the order of first lines.
func (c *Calls) totals(lines []shownLine) []tally {
	at := make([]int, len(c.tools)) // one more than the index
	var totals []tally
	for i := range lines {
		l := lines[i].line
		if at[l.number] == 0 {
			totals = append(totals, tally{tool: l.tool})
			at[l.number] = len(totals)
		}
		totals[at[l.number]-1].by[l.outcome] += l.times
	}
	slices.SortStableFunc(totals, func(a, b tally) int { return cmp.Compare(b.times(), a.times()) })
	return totals
}

func (c *Calls) summed(totals []tally) []budget.Piece {
	out := make([]budget.Piece, len(totals))
	for i, t := range totals {
		out[i] = c.gauge.Piece(t.summary())
	}
	return out
}

// inFull returns lines with their arguments and pointers.
func (c *Calls) inFull(lines []shownLine) []budget.Piece {
	out := make([]budget.Piece, len(lines))
	for i, l := range lines {
		out[i] = budget.Piece{Text: l.String(), Cost: l.cost}
	}
	return out
}

func (l shownLine) String() string {
	var s strings.Builder
	s.Grow(len(l.tool) + len(l.arguments) + len(l.pointer) + 32)
	s.WriteString(l.tool)
	if l.arguments != "" {
		s.WriteByte(' ')
		s.WriteString(l.arguments)
	}
	s.WriteString(" → ")
	s.WriteString(l.outcome.String())
	if l.times > 1 {
		fmt.Fprintf(&s, " ×%d", l.times)
	}
	if l.pointer != "" {
		s.WriteByte(' ')
		s.WriteString(l.pointer)
	}
	s.WriteByte('\n')
	return s.String()
}

// summary returns one line for many calls.
func (t tally) summary() string {
	s := fmt.Sprintf("%s ×%d", t.tool, t.times())
	for outcome := Failed; outcome <= Interrupted; outcome++ {
		if t.by[outcome] > 0 {
			s += fmt.Sprintf(", %d %s", t.by[outcome], outcome)
		}
	}
	return s + "\n"
}
