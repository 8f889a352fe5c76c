package reduce

import (
	"fmt"
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/ledger"
	eventlog "github.com/contextd/contextd/internal/log"
)

// texts writes what replaces a reduced block. Each text is a function
// of the block and the limit alone; they are kept, so that an assembly does not
// write them again.
type texts struct {
	gauge budget.Accountant
	made  map[textKey]string
}

// textKey is everything that a text depends on.
type textKey struct {
	seq   eventlog.Seq
	block int
	kind  EditKind
	limit uint64
	// head and tail are those of the Clipping.
	head, tail uint64
}

func newTexts(gauge budget.Accountant) texts {
	return texts{gauge: gauge, made: map[textKey]string{}}
}

// namesPart is the part of an outline's size that names without their lines may take
// beside it.
const namesPart = 2

// stub returns the pointer line of an evicted result, an outline of at most
// outlineTokens, and the names that the outline does not hold.
func (t texts) stub(call *Call, outlineTokens uint64) string {
	key := textKey{seq: call.Seq, block: call.Block, kind: Stubbed, limit: outlineTokens}
	if s, ok := t.made[key]; ok {
		return s
	}
	s := fmt.Sprintf("[contextd: %s result evicted: %d chars, %d lines; ResolvePointer %s]",
		call.Name, utf8.RuneCountInString(call.Body), 1+strings.Count(call.Body, "\n"), Pointer(call.Seq, call.Block))
	if outlineTokens > 0 {
		if outline := ledger.Outline(call.Body, outlineTokens, t.gauge); outline != "" {
			s += "\n" + outline
		}
		if names := ledger.Names(call.Body, s, outlineTokens/namesPart, t.gauge); names != "" {
			s += "\nalso: " + names
		}
	}
	t.made[key] = s
	return s
}

// forget drops the texts of results and messages up to an event, which are dropped.
func (t texts) forget(through eventlog.Seq) {
	maps.DeleteFunc(t.made, func(k textKey, _ string) bool { return k.seq <= through })
}

// duplicate returns the pointer line of a result that a later call returned again.
func (t texts) duplicate(call, later *Call) string {
	return fmt.Sprintf("[contextd: the same result stands again below, at %s; ResolvePointer %s]",
		Pointer(later.Seq, later.Block), Pointer(call.Seq, call.Block))
}

// clip returns a result's head and tail within limit, or false if it fits.
func (t texts) clip(call *Call, tokens, limit uint64, c Clipping) (string, bool) {
	return t.cut(textKey{call.Seq, call.Block, Clipped, limit, c.HeadTokens, c.TailTokens}, call.Body, tokens)
}

// clipText does the same for a text block.
func (t texts) clipText(b Block, text string, limit uint64) (string, bool) {
	return t.cut(textKey{seq: b.Seq, block: b.Index, kind: Clipped, limit: limit}, text, b.Tokens)
}

func (t texts) cut(key textKey, text string, tokens uint64) (string, bool) {
	if s, ok := t.made[key]; ok {
		return s, s != ""
	}
	s, ok := cutter{t.gauge, key.head, key.tail}.cut(text, tokens, key.limit, Pointer(key.seq, key.block))
	t.made[key] = s
	return s, ok
}

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

// lineStart moves at forward to the first line start in the half after it, or
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
