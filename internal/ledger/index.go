package ledger

import (
	"cmp"
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/budget"
)

// Index collects the identifiers of dropped text. Texts must be added in the order of the log.
type Index struct {
	gauge   budget.Gauge
	entries map[string]*entry
	clock   int      // texts added so far
	order   []ranked // cached ranking; nil after an add
	shown   int      // how many Shown were made; the number of the newest
	places  map[string]*place
	// at is the place of the text that is added next (nil if unknown), and pointer the pointer of its call.
	at      *place
	pointer string
	// quotesArguments is set by QuoteArguments.
	quotesArguments bool
}

type entry struct {
	name budget.Piece // with a space before it; its cost is 0 until measured
	uses int          // how many texts have it; arguments count argumentWeight times
	last int          // the newest text that has it
	own  int          // the newest text of the agent's own that has it; 0 is none
	// around is the newest line with the name outside of arguments or, if there is none, in arguments.
	// quoted is the same line as quoted in an excerpt; nil until needed.
	around string
	quoted *budget.Piece
	shown  int // number of the newest Shown that is known to hold it
	// of is the place where the name last occurred, shownAt the place of around; nil is unknown. start orders the
	// excerpts from one place: the number of around's text, then the offset in it.
	of, shownAt *place
	start       int
	argument    bool   // around is from arguments
	pointer     string // of the call whose result around is from
}

// mostNames bounds the names of an index. Each takes about 230 bytes; sessions of thousands of calls have
// only a fraction of this number.
const mostNames = 1 << 18

// entry returns the entry of a name, creating it if needed; nil if the index is full.
func (x *Index) entry(name string) *entry {
	e := x.entries[name]
	if e == nil && len(x.entries) < mostNames {
		e = &entry{name: budget.Piece{Text: " " + name}}
		x.entries[e.name.Text[1:]] = e
	}
	return e
}

// forget evicts the lower-ranked half of the names if the index is full.
func (x *Index) forget() {
	if len(x.entries) < mostNames {
		return
	}
	for _, r := range x.ranking()[mostNames/2:] {
		delete(x.entries, r.name)
	}
}

// argumentWeight is how many times a name counts that the agent wrote in a call's arguments, because it was used, not
// only seen.
const argumentWeight = 4

// QuoteArguments makes the index quote lines of arguments for names that occurred nowhere else, and skip
// lines that consist of just the name.
func (x *Index) QuoteArguments() { x.quotesArguments = true }

// AddText adds a text that the model saw. The index keeps references into it.
func (x *Index) AddText(text string) { x.add(text, 1) }

// AddOwn adds a text that the agent wrote.
func (x *Index) AddOwn(text string) {
	x.add(text, 1)
	x.wrote(text)
}

// AddArguments adds the arguments of a call.
func (x *Index) AddArguments(arguments string) {
	x.add(arguments, argumentWeight)
	x.wrote(arguments)
}

// wrote records the names in the newest text, which the agent wrote.
func (x *Index) wrote(text string) {
	Identifiers(text, func(start, end int) bool {
		if e := x.entries[text[start:end]]; e != nil {
			e.own = x.clock
		}
		return true
	})
}

// Age returns how many texts ago the agent last wrote a name that is in a text; -1 is never.
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

// quote stores the line around text[start:end] as the excerpt of an entry.
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

// ranking orders the entries by their worth per token: how often a name was used, halved for every halfLife texts
// since its last use, divided by its length. Numbers and URLs count less, because they are seldom written again.
func (x *Index) ranking() []ranked {
	const (
		halfLife = 60 // texts
		scale    = 1 << 20
		nameCost = 20 // bytes added to each name's length
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

// likelihood estimates from a name's form how likely it is to be used again, in sixteenths of the likelihood of a
// path or symbol.
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

// leastNames is the fewest names from one place for which there is a heading.
const leastNames = 6

// Write lists the highest-ranked identifiers that are not already shown, in at most limit tokens, grouped by the
// place where they last occurred.
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
			cost = x.gauge.Piece(r.name).Cost // the first name may be listed without a space before it
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

// byPlace lists names grouped by place, each group in the order of rank. Names from places with too few of
// them come last.
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

// measured returns the name of an entry with a space before it: the costs of such pieces add up exactly.
func (x *Index) measured(e *entry) budget.Piece {
	if e.name.Cost == 0 {
		e.name = x.gauge.Piece(e.name.Text)
	}
	return e.name
}

// Names lists the names in body that are not in beside, in at most limit tokens, by rank. The number of lines with a
// name counts as its uses.
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

// NewIndex returns an empty index whose names a gauge measures.
func NewIndex(gauge budget.Gauge) *Index {
	return &Index{gauge: gauge, entries: map[string]*entry{}, places: map[string]*place{}}
}
