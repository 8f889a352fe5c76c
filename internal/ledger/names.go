package ledger

import "strings"

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
