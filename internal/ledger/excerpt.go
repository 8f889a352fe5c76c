package ledger

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/contextd/contextd/internal/budget"
)

// aroundMost is how many bytes of its line an excerpt holds on either side of its
// name at the most.
const aroundMost = 70

// Excerpts shows the highest-ranked identifiers that are not shown in the lines that each
// was last in, by the place that they are from, the highest-ranked place last, in at most limit
// tokens as the lines are quoted.
// Names that were in arguments alone have none without QuoteArguments. The text is the model's and the tools':
// quote must set a line off as data, always in the same way, and end it. What is returned is
// to be shown: the names in it are from now on.
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

// leastLines is how many lines from a place are shown under its heading.
const leastLines = 2

// linesByPlace shows lines by place, in their order there; before them those of which no other
// is from the same place.
func (x *Index) linesByPlace(picked []*entry, shown *Shown, quote func(line string) string) []budget.Piece {
	from := map[*place][]*entry{}
	at := map[*place]int{} // how high the best of a place ranks
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
			piece = x.gauge.Piece(quote(line)) // its end is a part of the line's
		}
		out = append(out, piece)
	}
	return out
}

// around is the line that holds the name at text[start:end], or aroundMost bytes of
// it on either side.
func around(text string, start, end int) string {
	from, to := max(0, start-aroundMost), min(len(text), end+aroundMost) // no further: a line may hold many names
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
