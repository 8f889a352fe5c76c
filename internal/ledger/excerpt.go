package ledger

import (
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// aroundLeast is how many bytes of text an excerpt holds on either side of its
	// name, as far as there are any, and aroundMost how many it may.
	aroundLeast = 22
	aroundMost  = 70
	// excerptGap stands between excerpts.
	excerptGap = "\n--\n"
)

// Excerpts shows the highest-ranked identifiers that except does not hold in the
// text where each last stood, the highest-ranked last, in at most limit tokens as
// count measures them. Names that stood in arguments alone have none. The text is
// the model's and the tools': whoever shows it must set it off as data.
func (x *Index) Excerpts(limit uint64, except string, count func(string) uint64) string {
	var picked []string
	held := map[string]bool{}
	gap := count(excerptGap)
	var used, bytes uint64
	for _, r := range x.ranking() {
		// Few tokens are shorter than two bytes, so no more can fit.
		if bytes/8 > limit {
			break
		}
		bytes += uint64(len(r.name)) + 1
		if r.around == "" || held[r.name] || strings.Contains(except, r.name) {
			continue
		}
		cost := count(r.around) + gap
		if used+cost > limit {
			continue
		}
		used += cost
		picked = append(picked, r.around)
		Identifiers(r.around, func(start, end int) bool {
			held[r.around[start:end]] = true
			return true
		})
	}
	slices.Reverse(picked)
	return strings.Join(picked, excerptGap)
}

// around is the name at text[start:end] with its line, or with aroundMost bytes of
// it on either side; where the name stands near an end of the line, with the line
// beside it too. It holds no empty line.
func around(text string, start, end int) string {
	from := lineStart(text, start)
	if start-from < aroundLeast && from > 0 {
		from = min(lineStart(text, from-1), max(start-aroundLeast, 0))
	}
	to := lineEnd(text, end)
	if to-end < aroundLeast && to < len(text) {
		to = max(lineEnd(text, to+1), min(end+aroundLeast, len(text)))
	}
	from, to = max(from, start-aroundMost), min(to, end+aroundMost)
	if blank := strings.LastIndex(text[from:start], "\n\n"); blank >= 0 {
		from += blank + 2
	}
	if blank := strings.Index(text[end:to], "\n\n"); blank >= 0 {
		to = end + blank
	}
	for from < start && !utf8.RuneStart(text[from]) {
		from++
	}
	for to < len(text) && to > end && !utf8.RuneStart(text[to]) {
		to--
	}
	return strings.Trim(text[from:to], "\n")
}

// lineStart is where the line begins that holds text[at].
func lineStart(text string, at int) int { return strings.LastIndexByte(text[:at], '\n') + 1 }

// lineEnd is where the line ends that holds text[at].
func lineEnd(text string, at int) int {
	if n := strings.IndexByte(text[at:], '\n'); n >= 0 {
		return at + n
	}
	return len(text)
}
