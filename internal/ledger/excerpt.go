package ledger

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/contextd/contextd/internal/budget"
)

// aroundMost is how many bytes of its line an excerpt holds on either side of its
// name at the most.
const aroundMost = 70

// Excerpts shows the highest-ranked identifiers that are not shown in the lines that each
// was last in, the highest-ranked last, in at most limit tokens as the lines are quoted.
// Names that were in arguments alone have none. The text is the model's and the tools':
// quote must set a line off as data, always in the same way, and end it. What is returned is
// to be shown: the names in it are from now on.
func (x *Index) Excerpts(limit uint64, shown *Shown, quote func(line string) string) []budget.Piece {
	var picked []*entry
	var used, bytes uint64
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
		if used+tokens > limit {
			continue
		}
		used += tokens
		picked = append(picked, r.entry)
		shown.mark(r.around)
	}
	slices.Reverse(picked)
	out := make([]budget.Piece, len(picked))
	for i, e := range picked {
		out[i] = *e.quoted
		if line, ok := strings.CutSuffix(e.around, "\r"); ok && i < len(picked)-1 {
			out[i] = x.gauge.Piece(quote(line)) // its end is a part of the line's
		}
	}
	return out
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
