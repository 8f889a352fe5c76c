package extractive

import (
	"strings"
	"unicode/utf8"

	"github.com/contextd/contextd/internal/ledger"
)

const (
	// enoughBytes is the size at which an excerpt ends with its line, and mostBytes the
	// one at which it ends within it.
	enoughBytes = 200
	mostBytes   = 400
	// scanBytes bounds how much of a block is looked at.
	scanBytes = 256 << 10
	// around is how much must be on either side of a name to show where it was, unless the
	// block ends there.
	around = 20
)

// excerpt is a candidate: a part of a block, word for word.
type excerpt struct {
	from source
	// block is the text that it is part of, distinguished by its address.
	block      *string
	start, end int
	// names are those that it shows with what is around them, edges those that it cuts off
	// from that; both without repeats.
	names, edges []int32
	// floor is what the excerpt is worth besides its names, and clock when it was there.
	floor, clock int
	score        int
}

func (e *excerpt) text() string { return (*e.block)[e.start:e.end] }

// block cuts a text into excerpts, which omit nothing but what no summary can hold, and
// returns them.
func (s *span) block(from source, text string) []*excerpt {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	s.clock++
	first := len(s.excerpts)
	text = text[:boundary(text, scanBytes)]
	for start := 0; start < len(text); {
		end := start + excerptLen(text[start:])
		s.excerpt(from, &text, start, end)
		start = end
	}
	return s.excerpts[first:]
}

// excerptLen is the length of the excerpt at the front of a text, which is not empty:
// up to the end of the line that makes it long enough, whether a real one or one that is
// escaped in JSON, or else to a blank before it becomes too long.
func excerptLen(text string) int {
	if len(text) <= enoughBytes {
		return len(text)
	}
	near := text[enoughBytes-1 : min(len(text), mostBytes)]
	end := strings.IndexByte(near, '\n')
	if escaped := strings.Index(near[:max(end, 0)], `\n`); escaped >= 0 {
		end = escaped + 1
	} else if end < 0 {
		if escaped := strings.Index(near, `\n`); escaped >= 0 {
			end = escaped + 1
		}
	}
	switch {
	case end >= 0:
		return enoughBytes + end
	case len(text) <= mostBytes:
		return len(text)
	}
	if blank := strings.LastIndexByte(near, ' '); blank >= 0 {
		return enoughBytes + blank
	}
	if end := boundary(text, mostBytes); end > 0 {
		return end
	}
	return mostBytes // no UTF-8
}

func (s *span) excerpt(from source, block *string, start, end int) {
	e := &excerpt{from: from, block: block, start: start, end: end, clock: s.clock, floor: saidFloor}
	text := e.text()
	if strings.TrimSpace(text) == "" || !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 || holdsHeading(text) {
		return
	}
	ledger.Identifiers(text, func(a, b int) bool {
		n := s.name(text[a:b], false)
		if (a >= around || start == 0) && (b+around <= len(text) || end == len(*block)) {
			e.names = add(e.names, n)
		} else {
			e.edges = add(e.edges, n)
		}
		return true
	})
	s.excerpts = append(s.excerpts, e)
}

// add appends what is not there yet; the list is short.
func add(names []int32, name int32) []int32 {
	for _, n := range names {
		if n == name {
			return names
		}
	}
	return append(names, name)
}

// holdsHeading reports whether a line of the text would read as a heading.
func holdsHeading(text string) bool {
	if !strings.Contains(text, "ctx:") {
		return false
	}
	for line := range strings.SplitSeq(text, "\n") {
		if _, ok := parseHeading(line); ok {
			return true
		}
	}
	return false
}

// boundary is the greatest place between runes that is not after n.
func boundary(text string, n int) int {
	if n >= len(text) {
		return len(text)
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return n
}
