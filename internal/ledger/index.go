package ledger

import (
	"cmp"
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/budget"
)

// Index gathers the identifiers of text that is dropped, in the order in
// which it was there.
type Index struct {
	gauge   budget.Gauge
	entries map[string]*entry
	clock   int      // texts taken in
	order   []ranked // nil where a text came in since
	shown   int      // how many Shown were made
	places  map[string]*place
	// at is the place of what is added, nil if it is not known, and pointer that of the call.
	at      *place
	pointer string
	// quotesArguments is set by QuoteArguments.
	quotesArguments bool
}

type entry struct {
	name budget.Piece // after a space; its cost is 0 until it is asked for
	uses int          // how many texts held it; arguments count more
	last int          // the newest of those texts
	own  int          // the newest that the agent wrote; 0 is none
	// around is the line in which the name last was outside of arguments, or else in these, and
	// quoted the same as it is quoted; nil until it is asked for.
	around string
	quoted *budget.Piece
	shown  int // the newest Shown that is known to hold it
	// of is where the name last was, and shownAt where it was in the text of around; nil is not
	// known. start is where in that text.
	of, shownAt *place
	start       int
	argument    bool   // whether that text is arguments
	pointer     string // of the call whose result is that text
}

// mostNames bounds the names of an index, each of which takes some 230 bytes. It is several times what
// sessions of thousands of calls have.
const mostNames = 1 << 18

// entry is that of a name, which is made if there is none and room for it; nil if there is no room.
func (x *Index) entry(name string) *entry {
	e := x.entries[name]
	if e == nil && len(x.entries) < mostNames {
		e = &entry{name: budget.Piece{Text: " " + name}}
		x.entries[e.name.Text[1:]] = e
	}
	return e
}

// forget drops the lower half of the names by rank where there is no room for more.
func (x *Index) forget() {
	if len(x.entries) < mostNames {
		return
	}
	for _, r := range x.ranking()[mostNames/2:] {
		delete(x.entries, r.name)
	}
}

// argumentWeight is how much more a name counts that the agent itself wrote in a
// call's arguments: it was used, not only seen.
const argumentWeight = 4

// QuoteArguments has names that only arguments held shown in the lines of these, and none in a
// line that it is alone in. An index does neither without it.
func (x *Index) QuoteArguments() { x.quotesArguments = true }

// AddText takes in a text that the model saw.
// It is kept as long as the index.
func (x *Index) AddText(text string) { x.add(text, 1) }

// AddOwn takes in a text that the agent wrote.
func (x *Index) AddOwn(text string) {
	x.add(text, 1)
	x.wrote(text)
}

// AddArguments takes in the arguments of a call.
func (x *Index) AddArguments(arguments string) {
	x.add(arguments, argumentWeight)
	x.wrote(arguments)
}

// wrote takes note of the names in the newest text, which is the agent's.
func (x *Index) wrote(text string) {
	Identifiers(text, func(start, end int) bool {
		if e := x.entries[text[start:end]]; e != nil {
			e.own = x.clock
		}
		return true
	})
}

// Age is how many texts ago the agent last wrote a name that is in a text; -1 is never.
func (x *Index) Age(text string) int {
	age := -1
	Identifiers(text, func(start, end int) bool {
		if e := x.entries[text[start:end]]; e != nil && e.own > 0 && (age < 0 || x.clock-e.own < age) {
			age = x.clock - e.own
		}
		return true
	})
	return age
}

func (x *Index) add(text string, weight int) {
	x.forget()
	x.clock++
	x.order = nil
	Identifiers(text, func(start, end int) bool {
		e := x.entry(text[start:end])
		if e != nil && e.last != x.clock {
			e.uses += weight
			e.last, e.of = x.clock, x.at
			x.quote(e, text, start, end, weight == argumentWeight)
		}
		return true
	})
}

// quote takes note of the line in which the name of an entry is, at text[start:end].
func (x *Index) quote(e *entry, text string, start, end int, argument bool) {
	if argument && (!x.quotesArguments || e.around != "" && !e.argument) {
		return
	}
	line := around(text, start, end)
	if x.quotesArguments && strings.TrimSpace(line) == text[start:end] {
		return
	}
	e.around, e.quoted, e.shownAt, e.start, e.argument, e.pointer = line, nil, x.at, x.clock<<32+start, argument, x.pointer
	if argument {
		e.pointer = ""
	}
}

// ranked is an entry with its rank.
type ranked struct {
	*entry
	name string
	rank uint64
}

// ranking orders the entries by what a token spent on them is worth: how often a
// name was used, halved for every so many texts since it was used last, by its
// length. Numbers, dates and URLs are seldom written again.
func (x *Index) ranking() []ranked {
	const (
		halfLife = 60 // texts
		scale    = 1 << 20
		nameCost = 20 // bytes that a name costs beside its own
	)
	if x.order != nil {
		return x.order
	}
	all := make([]ranked, 0, len(x.entries))
	for name, e := range x.entries {
		age := min((x.clock-e.last)/halfLife, 20)
		rank := (uint64(e.uses) * scale) >> age * likelihood(name) / uint64(len(name)+nameCost)
		all = append(all, ranked{e, name, rank})
	}
	slices.SortFunc(all, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(b.last, a.last), cmp.Compare(a.name, b.name))
	})
	x.order = all
	return all
}

// likelihood is how likely a name is to be used again by its form alone, in
// sixteenths of what a path or symbol is.
func likelihood(name string) uint64 {
	const path, number, address = 16, 3, 3
	letters, digits := 0, 0
	for i := range len(name) {
		switch classes[name[i]] {
		case digit:
			digits++
		case lower, upper:
			letters++
		}
	}
	switch {
	case digits > letters:
		return number
	case strings.Contains(name, "://"):
		return address
	default:
		return path
	}
}

// leastNames is how many names of a place are listed under its heading; fewer are not worth it.
const leastNames = 6

// Write lists the highest-ranked identifiers that are not shown, in at most limit tokens, by
// the place where they last were.
func (x *Index) Write(limit uint64, shown *Shown) []budget.Piece {
	var picked []ranked
	var cost, bytes uint64
	count := map[*place]int{}
	for _, r := range x.ranking() {
		if bytes/8 > limit { // few tokens are shorter than two bytes, so no more can fit
			break
		}
		if shown.holds(r) {
			continue
		}
		bytes += uint64(len(r.name)) + 1
		if cost += x.measured(r.entry).Cost; len(picked) == 0 {
			cost = x.gauge.Piece(r.name).Cost // it may be listed without a blank before it
		}
		if count[r.of]++; r.of != nil && count[r.of] == leastNames {
			cost += x.namesHeading(r.of, shown).Cost
		}
		if x.gauge.Tokens(cost) > limit {
			break
		}
		picked = append(picked, r)
	}
	for {
		out := x.byPlace(picked, shown)
		if len(picked) == 0 || x.gauge.Sum(out...).Tokens() <= limit {
			return out
		}
		picked = picked[:len(picked)-1]
	}
}

// byPlace lists names by place, those of few others last, each in the order of rank.
func (x *Index) byPlace(picked []ranked, shown *Shown) []budget.Piece {
	of := map[*place][]ranked{}
	var places []*place
	for _, r := range picked {
		if of[r.of] = append(of[r.of], r); r.of != nil && len(of[r.of]) == leastNames {
			places = append(places, r.of)
		}
	}
	var out []budget.Piece
	for _, p := range places {
		if len(out) > 0 {
			out = append(out, x.gauge.Piece("\n"))
		}
		heading := x.namesHeading(p, shown)
		out = append(out, heading)
		for _, r := range of[p] {
			if r.name != p.name || !strings.Contains(heading.Text, p.name) {
				out = append(out, x.measured(r.entry))
			}
		}
	}
	first := true
	for _, r := range picked {
		if r.of != nil && len(of[r.of]) >= leastNames {
			continue
		}
		switch piece := x.measured(r.entry); {
		case !first:
			out = append(out, piece)
		case len(out) == 0:
			out = append(out, x.gauge.Piece(r.name))
		default:
			out = append(out, x.gauge.Piece("\nelsewhere:"), piece)
		}
		first = false
	}
	return out
}

// measured is the name of an entry after a space: names cost together what each does.
func (x *Index) measured(e *entry) budget.Piece {
	if e.name.Cost == 0 {
		e.name = x.gauge.Piece(e.name.Text)
	}
	return e.name
}

// Names lists the names of a body that beside does not hold, in at most limit tokens:
// those on the most lines first, by what a token spent on them is worth.
func Names(body, beside string, limit uint64, gauge budget.Gauge) string {
	x := NewIndex(gauge)
	for line := range strings.SplitSeq(cutLine(body, outlineScan), "\n") {
		Identifiers(line, func(start, end int) bool {
			x.entry(line[start:end]).uses++
			return true
		})
	}
	shown := x.Shown()
	shown.Grow(beside)
	return budget.Join(x.Write(limit, shown))
}

// NewIndex returns an empty index whose names are measured by a gauge.
func NewIndex(gauge budget.Gauge) *Index {
	return &Index{gauge: gauge, entries: map[string]*entry{}, places: map[string]*place{}}
}
