package ledger

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/contextd/contextd/internal/budget"
)

// aroundMost is the most bytes of its line that an excerpt has on either side of its name.
const aroundMost = 70

// Excerpts quotes the lines in which the highest-ranked identifiers last occurred, except for identifiers that are
// already shown. The quoted lines take at most limit tokens. They are grouped by place, the place of the highest rank
// last. A name that occurred only in arguments has no excerpt, unless QuoteArguments was called. The lines come from
// the model and its tools: quote must mark a line as data, always in the same way, and end it with a line feed.
// Excerpts marks the names in its result as shown.
func (x *Index) Excerpts(limit uint64, shown *Shown, quote func(line string) string) []budget.Piece {
	var picked []*entry
	var used, bytes uint64
	from := map[*place][]*entry{}
	for _, r := range x.ranking() {
		// Few tokens are shorter than two bytes, so no more can fit.
		if bytes/8 > limit {
			break
		}
		bytes += uint64(len(r.name)) + 1
		if r.around == "" || shown.holds(r) {
			continue
		}
		if r.quoted == nil {
			p := x.gauge.Piece(quote(r.around))
			r.quoted = &p
		}
		tokens := x.gauge.Tokens(r.quoted.Cost)
		if beside := from[r.shownAt]; r.shownAt != nil && len(beside) >= leastLines-1 {
			now := x.gauge.Tokens(x.linesHeading(r.shownAt, append(beside, r.entry), shown).Cost)
			if len(beside) >= leastLines {
				now -= min(now, x.gauge.Tokens(x.linesHeading(r.shownAt, beside, shown).Cost))
			}
			tokens += now
		}
		if used+tokens > limit {
			continue
		}
		used += tokens
		from[r.shownAt] = append(from[r.shownAt], r.entry)
		picked = append(picked, r.entry)
		shown.mark(r.around)
	}
	slices.Reverse(picked)
	for {
		out := x.linesByPlace(picked, shown, quote)
		if len(picked) == 0 || x.gauge.Sum(out...).Tokens() <= limit {
			return out
		}
		picked = picked[1:]
	}
}

// leastLines is the fewest lines from one place for which there is a heading.
const leastLines = 2

// linesByPlace quotes lines grouped by place, in their order there. Places with only one line come first.
func (x *Index) linesByPlace(picked []*entry, shown *Shown, quote func(line string) string) []budget.Piece {
	from := map[*place][]*entry{}
	at := map[*place]int{} // greatest rank position of a line from the place
	for i, e := range picked {
		if from[e.shownAt] = append(from[e.shownAt], e); e.shownAt != nil && len(from[e.shownAt]) >= leastLines {
			at[e.shownAt] = i + 1
		}
	}
	sorted := slices.Clone(picked)
	slices.SortStableFunc(sorted, func(a, b *entry) int {
		if order := cmp.Compare(at[a.shownAt], at[b.shownAt]); order != 0 || at[a.shownAt] == 0 {
			return order
		}
		return cmp.Compare(a.start, b.start)
	})
	var out []budget.Piece
	for i, e := range sorted {
		if n := len(from[e.shownAt]); at[e.shownAt] > 0 && (i == 0 || sorted[i-1].shownAt != e.shownAt) {
			out = append(out, x.linesHeading(e.shownAt, sorted[i:i+n], shown))
		}
		piece := *e.quoted
		if line, ok := strings.CutSuffix(e.around, "\r"); ok && i < len(sorted)-1 {
			piece = x.gauge.Piece(quote(line)) // the CR belongs to the line end
		}
		out = append(out, piece)
	}
	return out
}

// around returns the line with the name at text[start:end], cut to aroundMost bytes on either side of the name.
func around(text string, start, end int) string {
	from, to := max(0, start-aroundMost), min(len(text), end+aroundMost) // bounds the search in a long line that holds many names
	from += strings.LastIndexByte(text[from:start], '\n') + 1
	if n := strings.IndexByte(text[end:to], '\n'); n >= 0 {
		to = end + n
	}
	for from < start && !utf8.RuneStart(text[from]) {
		from++
	}
	for to < len(text) && to > end && !utf8.RuneStart(text[to]) {
		to--
	}
	return text[from:to]
}
