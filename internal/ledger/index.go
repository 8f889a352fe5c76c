package ledger

import (
	"cmp"
	"slices"
	"strings"
)

// Index gathers the identifiers of text that leaves the context, in the order in
// which it stood there. The zero value is empty and ready.
type Index struct {
	entries map[string]*entry
	clock   int // texts taken in
}

type entry struct {
	name string
	uses int // how many texts held it; arguments count more
	last int // the newest of those texts
}

// argumentWeight is how much more a name counts that the agent itself wrote in a
// call's arguments: it was used, not only seen.
const argumentWeight = 4

// AddText takes in a text that the model saw.
func (x *Index) AddText(text string) { x.add(text, 1) }

// AddArguments takes in the arguments of a call.
func (x *Index) AddArguments(arguments string) { x.add(arguments, argumentWeight) }

func (x *Index) add(text string, weight int) {
	if x.entries == nil {
		x.entries = map[string]*entry{}
	}
	x.clock++
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
		}
		return true
	})
}

// Write lists the highest-ranked identifiers that except does not hold, in at
// most limit tokens as count measures them. The rank is how often a name was
// used, halved for every so many texts since it was used last.
func (x *Index) Write(limit uint64, except string, count func(string) uint64) string {
	const halfLife = 24 // texts
	const scale = 1 << 20
	type ranked struct {
		*entry
		rank int
	}
	all := make([]ranked, 0, len(x.entries))
	for _, e := range x.entries {
		age := min((x.clock-e.last)/halfLife, 20)
		all = append(all, ranked{e, (e.uses * scale) >> age})
	}
	slices.SortFunc(all, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(b.last, a.last), cmp.Compare(a.name, b.name))
	})
	// Few tokens are shorter than two bytes, so this many names cannot fit.
	var names []string
	var bytes uint64
	for _, r := range all {
		if bytes/8 > limit {
			break
		}
		if strings.Contains(except, r.name) {
			continue
		}
		names = append(names, r.name)
		bytes += uint64(len(r.name)) + 1
	}
	n := searchMost(len(names), func(n int) bool { return count(strings.Join(names[:n], " ")) <= limit })
	return strings.Join(names[:n], " ")
}
