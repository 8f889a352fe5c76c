package extractive

import (
	"strings"
	"unicode/utf8"

	"github.com/contextd/contextd/internal/ledger"
)

const (
	// enoughBytes is the size from which on an excerpt ends with its line, and mostBytes the size at which it ends
	// within a line.
	enoughBytes = 200
	mostBytes   = 400
	// scanBytes bounds how much of a block is looked at.
	scanBytes = 256 << 10
	// around is how many bytes must be on either side of a name to show where it was, unless the block ends there.
	around = 20
)

// excerpt is a candidate: a part of a block, word for word.
type excerpt struct {
	from source
	// block is the text of which it is a part. Blocks are compared by address.
	block      *string
	start, end int
	// names are the names that it shows with their surroundings, edges those that it shows without; both have no
	// repeats.
	names, edges []int32
	// floor is the worth of the excerpt besides its names. clock is the number of its text.
	floor, clock int
	score        int
}

func (e *excerpt) text() string { return (*e.block)[e.start:e.end] }

// block divides a text into excerpts. They omit only lines that a summary cannot have, such as those that read as
// headings.
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

// excerptLen returns the length of the first excerpt of a text, which must not be empty. The excerpt ends with the
// line that makes it long enough (the line end may be an escaped one, as in JSON), or else at a blank before it is
// too long.
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
	return mostBytes // not UTF-8
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

// add appends a name unless the list has it. The list is short.
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

// boundary returns the last boundary between runes at n or before.
func boundary(text string, n int) int {
	if n >= len(text) {
		return len(text)
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return n
}
