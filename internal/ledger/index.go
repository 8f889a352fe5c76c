package ledger

import (
	"cmp"
	"slices"
	"strings"
)

// Index gathers the identifiers of text that is dropped, in the order in
// which it was there. The zero value is empty and ready.
type Index struct {
	entries map[string]*entry
	clock   int      // texts taken in
	order   []ranked // nil where a text came in since
}

type entry struct {
	name string
	uses int // how many texts held it; arguments count more
	last int // the newest of those texts
	// around is the text in which the name last was outside of arguments.
	around string
}

// argumentWeight is how much more a name counts that the agent itself wrote in a
// call's arguments: it was used, not only seen.
const argumentWeight = 4

// AddText takes in a text that the model saw.
// It is kept as long as the index.
func (x *Index) AddText(text string) { x.add(text, 1) }

// AddArguments takes in the arguments of a call.
func (x *Index) AddArguments(arguments string) { x.add(arguments, argumentWeight) }

func (x *Index) add(text string, weight int) {
	if x.entries == nil {
		x.entries = map[string]*entry{}
	}
	x.clock++
	x.order = nil
	Identifiers(text, func(start, end int) bool {
		name := text[start:end]
		e := x.entries[name]
		if e == nil {
			e = &entry{name: strings.Clone(name)}
			x.entries[e.name] = e
		}
		if e.last != x.clock {
			e.uses += weight
			e.last = x.clock
			if weight != argumentWeight {
				e.around = around(text, start, end)
			}
		}
		return true
	})
}

// ranked is an entry with its rank.
type ranked struct {
	*entry
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
	for _, e := range x.entries {
		age := min((x.clock-e.last)/halfLife, 20)
		rank := (uint64(e.uses) * scale) >> age * likelihood(e.name) / uint64(len(e.name)+nameCost)
		all = append(all, ranked{e, rank})
	}
	slices.SortFunc(all, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(b.last, a.last), cmp.Compare(a.name, b.name))
	})
	x.order = all
	return all
}

// holder knows which names a text holds. It rules most others out by the windows of four
// bytes that the text has, without reading the text again.
type holder struct {
	text    string
	windows [1 << 10]uint64 // a set of hashes of 16 bits
}

func newHolder(text string) *holder {
	h := &holder{text: text}
	for i := 0; i+4 <= len(text); i++ {
		n := window(text[i:])
		h.windows[n>>6] |= 1 << (n & 63)
	}
	return h
}

// window hashes the first four bytes.
func window(s string) uint16 {
	n := uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
	return uint16(n * 0x9E3779B1 >> 16)
}

func (h *holder) holds(name string) bool {
	for i := 0; i+4 <= len(name); i++ {
		if n := window(name[i:]); h.windows[n>>6]&(1<<(n&63)) == 0 {
			return false
		}
	}
	return strings.Contains(h.text, name)
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

// Write lists the highest-ranked identifiers that except does not hold, in at
// most limit tokens as count measures them.
func (x *Index) Write(limit uint64, except string, count func(string) uint64) string {
	// Few tokens are shorter than two bytes, so this many names cannot fit.
	var names []string
	var bytes uint64
	held := newHolder(except)
	for _, r := range x.ranking() {
		if bytes/8 > limit {
			break
		}
		if held.holds(r.name) {
			continue
		}
		names = append(names, r.name)
		bytes += uint64(len(r.name)) + 1
	}
	n := searchMost(len(names), func(n int) bool { return count(strings.Join(names[:n], " ")) <= limit })
	return strings.Join(names[:n], " ")
}

// Names lists the names of a body that except does not hold, in at most limit tokens
// as count measures them: those on the most lines first, by what a token spent on
// them is worth.
func Names(body, except string, limit uint64, count func(string) uint64) string {
	x := Index{entries: map[string]*entry{}}
	for line := range strings.SplitSeq(cutLine(body, outlineScan), "\n") {
		Identifiers(line, func(start, end int) bool {
			e := x.entries[line[start:end]]
			if e == nil {
				e = &entry{name: line[start:end]}
				x.entries[e.name] = e
			}
			e.uses++
			return true
		})
	}
	return x.Write(limit, except, count)
}
