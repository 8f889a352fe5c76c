package ledger

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// aroundMost is how many bytes of its line an excerpt holds on either side of its
// name at the most.
const aroundMost = 70

// Excerpts shows the highest-ranked identifiers that except does not hold in the
// lines that each was last in, the highest-ranked last, in at most limit tokens as
// count measures each line. Names that were in arguments alone have none. The text is
// the model's and the tools': whoever shows it must set it off as data, and count that.
func (x *Index) Excerpts(limit uint64, except string, count func(string) uint64) string {
	var picked []string
	held, shown := newHolder(except), map[string]bool{}
	var used, bytes uint64
	for _, r := range x.ranking() {
		// Few tokens are shorter than two bytes, so no more can fit.
		if bytes/8 > limit {
			break
		}
		bytes += uint64(len(r.name)) + 1
		if r.around == "" || shown[r.name] || held.holds(r.name) {
			continue
		}
		cost := count(r.around + "\n")
		if used+cost > limit {
			continue
		}
		used += cost
		picked = append(picked, r.around)
		Identifiers(r.around, func(start, end int) bool {
			shown[r.around[start:end]] = true
			return true
		})
	}
	slices.Reverse(picked)
	return strings.Join(picked, "\n")
}

// around is the line that holds the name at text[start:end], or aroundMost bytes of
// it on either side.
func around(text string, start, end int) string {
	from := max(strings.LastIndexByte(text[:start], '\n')+1, start-aroundMost)
	to := len(text)
	if n := strings.IndexByte(text[end:], '\n'); n >= 0 {
		to = end + n
	}
	to = min(to, end+aroundMost)
	for from < start && !utf8.RuneStart(text[from]) {
		from++
	}
	for to < len(text) && to > end && !utf8.RuneStart(text[to]) {
		to--
	}
	return text[from:to]
}
