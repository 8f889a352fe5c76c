package extractive

import (
	"cmp"
	"slices"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

// A summary is a list of blocks in the order of the log. Each has a heading, which is the block's pointer and "said",
// and then the picked parts in their order, each on a line of its own. Lines without a heading come first: they are
// from a text that another summarizer wrote.

// origin says what a block was. Origins other than said are only in texts of earlier builds, which write result as an
// empty text.
type origin string

const (
	result origin = ""
	failed origin = "failed"
	said   origin = "said"
	called origin = "called with"
)

// source is the block from which lines are; seq is 0 for lines without a heading.
type source struct {
	seq    eventlog.Seq
	block  int
	origin origin
}

func (s source) heading() string {
	h := reduce.Pointer(s.seq, s.block)
	if s.origin != result {
		h += " " + string(s.origin)
	}
	return h
}

func (s source) compare(o source) int {
	return cmp.Or(cmp.Compare(s.seq, o.seq), cmp.Compare(s.block, o.block), cmp.Compare(s.origin, o.origin))
}

// parseHeading is the inverse of heading. It ignores blanks at the end.
func parseHeading(line string) (source, bool) {
	line = strings.TrimRight(line, " \t\r")
	pointer, from, _ := strings.Cut(line, " ")
	seq, block, err := reduce.ParsePointer(pointer)
	if err != nil {
		return source{}, false
	}
	s := source{seq, block, origin(from)}
	return s, s.heading() == line && (s.origin == result || s.origin == failed || s.origin == said || s.origin == called)
}

// compose writes excerpts as a summary. It sorts them, and joins adjacent ones.
func compose(picked []*excerpt) string {
	picked = slices.Clone(picked)
	slices.SortFunc(picked, func(a, b *excerpt) int {
		return cmp.Or(a.from.compare(b.from), cmp.Compare(a.start, b.start))
	})
	var out []byte
	for i, e := range picked {
		if i > 0 && picked[i-1].block == e.block && picked[i-1].end == e.start {
			out = append(out, e.text()...)
			continue
		}
		if len(out) > 0 && out[len(out)-1] != '\n' {
			out = append(out, '\n')
		}
		if (i == 0 || picked[i-1].from != e.from) && e.from.seq != 0 {
			out = append(out, e.from.heading()...)
			out = append(out, '\n')
		}
		out = append(out, strings.TrimLeft(e.text(), "\r\n")...)
	}
	return strings.TrimRight(string(out), " \t\r\n")
}
