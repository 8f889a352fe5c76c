package extractive

import (
	"cmp"
	"slices"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

// A summary is a list of blocks in the order of the log: a heading, which is the
// block's pointer and that it was said, and then parts of it in their order, each on a line of
// its own. What has no heading is at the front: it comes from a text that something else wrote.

// origin says what a block was. Those other than said are in texts of earlier builds, where
// result is written as nothing.
type origin string

const (
	result origin = ""
	failed origin = "failed"
	said   origin = "said"
	called origin = "called with"
)

// source is a block that lines come from; seq 0 for what has no heading.
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

// parseHeading is the inverse of heading, but for blanks after it.
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

// compose writes excerpts as a summary. It orders them, and joins those that touch.
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
