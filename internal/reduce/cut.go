package reduce

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/contextd/contextd/internal/budget"
)

// cutter keeps the head and the tail of a text within a limit of tokens.
type cutter struct {
	gauge budget.Accountant
	// head and tail are how many tokens of each end stay at the most; both 0 divide
	// the limit two to one.
	head, tail uint64
}

// cut returns text shortened to at most limit tokens, with a note in the gap
// that names the pointer. It cuts between lines where a line end is near, and
// between runes always. ok is false if text fits already, or if limit is too
// small to say anything.
func (c cutter) cut(text string, tokens, limit uint64, pointer string) (short string, ok bool) {
	if tokens <= limit || len(text) == 0 {
		return "", false
	}
	head, tail := min(c.head, limit), min(c.tail, limit)
	kept := min(head+tail, limit)
	if kept == 0 {
		head, tail, kept = 2, 1, limit
	}
	// The first guess takes the text's own bytes per token; each further one is
	// smaller by a fifth, so the loop ends.
	room := uint64(len(text)) * kept / tokens
	for room > 0 {
		headEnd := lineEnd(text, int(room*head/(head+tail)))
		tailStart := lineStart(text, len(text)-int(room*tail/(head+tail)))
		if headEnd >= tailStart {
			room = room * 4 / 5
			continue
		}
		short = text[:headEnd] + cutNote(text[headEnd:tailStart], pointer) + text[tailStart:]
		if c.gauge.Text(short) <= limit {
			return short, true
		}
		room = room * 4 / 5
	}
	return "", false
}

func cutNote(gap, pointer string) string {
	return fmt.Sprintf("\n[contextd: %d chars, %d lines cut here; ResolvePointer %s]\n",
		utf8.RuneCountInString(gap), strings.Count(gap, "\n"), pointer)
}

// lineEnd moves at back to the last line end in the half before it, or else to a
// rune boundary.
func lineEnd(text string, at int) int {
	if nl := strings.LastIndexByte(text[:at], '\n'); nl >= at/2 && nl > 0 {
		return nl
	}
	for at > 0 && !utf8.RuneStart(text[at]) {
		at--
	}
	return at
}

// lineStart moves at forward to the first line start in the half behind it, or
// else to a rune boundary.
func lineStart(text string, at int) int {
	if nl := strings.IndexByte(text[at:], '\n'); nl >= 0 && nl < (len(text)-at)/2 {
		return at + nl + 1
	}
	for at < len(text) && !utf8.RuneStart(text[at]) {
		at++
	}
	return at
}
