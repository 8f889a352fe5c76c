package reduce

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/ledger"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/quote"
)

// writer writes the texts that replace reduced blocks. recall is the tool with which the model can get the blocks
// back.
type writer struct {
	*texts
	recall Recall
}

// texts caches the texts that replace reduced blocks, with their sizes, so that an assembly does not write
// and count them again. A text depends on its textKey alone, not on the rest of the policy or the budget.
type texts struct {
	gauge budget.Gauge
	// stubs are for any budget. clips have a bound of their own, because each budget may need others.
	stubs, clips keptTexts
	lines        map[eventlog.Place]budget.Lines // the counted lines of results that were clipped
	lineBytes    int
}

// keptTexts are cached texts, and about how much memory they take.
type keptTexts struct {
	made  map[textKey]budget.Piece
	bytes int
}

// textKey has everything that a text depends on.
type textKey struct {
	seq   eventlog.Seq
	block int
	kind  EditKind
	limit uint64
	// head, tail and names are those of the Clipping.
	head, tail, names uint64
	recall            Recall
}

func newTexts(gauge budget.Gauge) *texts {
	t := &texts{gauge: gauge, stubs: keptTexts{made: map[textKey]budget.Piece{}}, clips: keptTexts{made: map[textKey]budget.Piece{}}}
	t.lines = map[eventlog.Place]budget.Lines{}
	return t
}

// textOverhead is about the memory of a cached text without its bytes, and extentBytes that of a counted
// line.
const (
	textOverhead = 128
	extentBytes  = 32
)

func (k *keptTexts) keep(key textKey, p budget.Piece) budget.Piece {
	k.made[key] = p
	k.bytes += len(p.Text) + textOverhead
	return p
}

// forget drops the texts for blocks up to an event.
func (k *keptTexts) forget(through eventlog.Seq) {
	for key, p := range k.made {
		if key.seq <= through {
			delete(k.made, key)
			k.bytes -= len(p.Text) + textOverhead
		}
	}
}

// forget drops the cached texts for blocks up to an event, because these blocks were dropped from the context.
func (t *texts) forget(through eventlog.Seq) {
	t.stubs.forget(through)
	t.clips.forget(through)
	for place, lines := range t.lines {
		if place.Seq <= through {
			delete(t.lines, place)
			t.lineBytes -= extentBytes * len(lines)
		}
	}
}

// clipPart says that clips may take a quarter of the bound.
const clipPart = 4

// bound clears the cache if it takes more than bytes of memory. Stubs and lines seldom take as much as their blocks.
func (t *texts) bound(bytes int) {
	if t.stubs.bytes+t.lineBytes > bytes {
		clear(t.stubs.made)
		clear(t.lines)
		t.stubs.bytes, t.lineBytes = 0, 0
	}
	if t.clips.bytes > bytes/clipPart {
		clear(t.clips.made)
		t.clips.bytes = 0
	}
}

// bytes returns about how much memory the texts take.
func (t *texts) bytes() int { return t.stubs.bytes + t.clips.bytes + t.lineBytes }

// namesPart says that the names next to an outline may take half of the outline's size.
const namesPart = 2

// stub returns the pointer line of an evicted result, an outline of at most outlineTokens, and names that are not in
// the outline.
func (t writer) stub(call *Call, outlineTokens uint64) budget.Piece {
	key := textKey{seq: call.Seq, block: call.Block, kind: Stubbed, limit: outlineTokens, recall: t.recall}
	if s, ok := t.stubs.made[key]; ok {
		return s
	}
	s := fmt.Sprintf("[contextd: %s result evicted: %d chars, %d lines; %s]",
		quote.Name(call.Name), utf8.RuneCountInString(call.Body), 1+strings.Count(call.Body, "\n"), t.recall.Result(call))
	if outlineTokens > 0 {
		if outline := ledger.Outline(call.Body, outlineTokens, t.gauge); outline != "" {
			s += "\n" + outline
		}
		if names := ledger.Names(call.Body, s, outlineTokens/namesPart, t.gauge); names != "" {
			s += "\nalso: " + names
		}
	}
	return t.stubs.keep(key, t.gauge.Piece(s))
}

// duplicate returns the pointer line of a result that a later call returned again.
func (t writer) duplicate(call, later *Call) budget.Piece {
	return t.gauge.Piece(fmt.Sprintf("[contextd: the same result stands again below, at %s; %s]",
		Pointer(later.Seq, later.Block), t.recall.Pointer(call.Seq, call.Block)))
}

// longestMIMEType is how many bytes of a type are shown.
const longestMIMEType = 64

// described returns the text that replaces media or a provider block.
func (t writer) described(b Block) budget.Piece {
	what := "a block of the provider's own"
	if m, ok := b.Block.(eventlog.Media); ok {
		what = "media"
		if n := len(m.MIMEType); n > 0 && n <= longestMIMEType {
			what = quote.Line(m.MIMEType)
		}
	}
	return t.gauge.Piece(fmt.Sprintf("[contextd: %s of %d tokens is too large to be shown; %s]", what, b.Tokens, t.recall.Pointer(b.Seq, b.Index)))
}

// clip returns a result's head and tail within limit, with names from the part between them; false if the
// result fits, or if limit is too small for a clip.
func (t writer) clip(call *Call, tokens, limit uint64, c Clipping) (budget.Piece, bool) {
	key := textKey{call.Seq, call.Block, Clipped, limit, c.HeadTokens, c.TailTokens, c.names(limit), t.recall}
	if p, ok := t.clips.made[key]; ok {
		return p, p.Text != ""
	}
	lines, ok := t.lines[call.Place()]
	if !ok {
		lines = t.gauge.Lines(call.Body)
		t.lines[call.Place()] = lines
		t.lineBytes += extentBytes * len(lines)
	}
	return t.cut(key, call.Body, tokens, lines, t.recall.Result(call))
}

// clipText is clip for a text block.
func (t writer) clipText(b Block, text string, limit uint64) (budget.Piece, bool) {
	key := textKey{seq: b.Seq, block: b.Index, kind: Clipped, limit: limit, recall: t.recall}
	return t.cut(key, text, b.Tokens, nil, t.recall.Pointer(b.Seq, b.Index))
}

func (t *texts) cut(key textKey, text string, tokens uint64, lines budget.Lines, back string) (budget.Piece, bool) {
	p, ok := t.clips.made[key]
	if !ok {
		p, _ = cutter{t.gauge, key.head, key.tail, key.names, lines}.cut(text, tokens, key.limit, back)
		t.clips.keep(key, p)
	}
	return p, p.Text != ""
}

// cutter keeps the head and the tail of a text within a limit of tokens.
type cutter struct {
	gauge budget.Gauge
	// head and tail are the most tokens that stay of each end. With both 0 the ends share the limit two to one.
	head, tail uint64
	// names is the most tokens of names that occur only in the gap.
	names uint64
	// lines are the counted lines of the text; with nil each attempt is counted again.
	lines budget.Lines
}

// cut returns text shortened to at most limit tokens. A note in the gap says with back how to get the whole text. It
// cuts between lines if a line end is near, else between runes. ok is false if text fits already, or if limit is too
// small for a clip.
func (c cutter) cut(text string, tokens, limit uint64, back string) (short budget.Piece, ok bool) {
	if tokens <= limit || len(text) == 0 {
		return short, false
	}
	head, tail := min(c.head, limit), min(c.tail, limit)
	kept, bare := min(head+tail, limit), limit-c.names
	if kept == 0 {
		head, tail, kept = 2, 1, bare
	}
	// The first guess uses the text's own bytes per token. Each further one is smaller by a fifth, so the loop ends.
	room := uint64(len(text)) * kept / tokens
	for room > 0 {
		headEnd := lineEnd(text, int(room*head/(head+tail)))
		tailStart := lineStart(text, len(text)-int(room*tail/(head+tail)))
		if headEnd >= tailStart {
			room = room * 4 / 5
			continue
		}
		if short = c.without(text, headEnd, tailStart, "", back, bare); short.Text != "" {
			if c.names > 0 {
				names := ledger.Names(text[headEnd:tailStart], text[:headEnd]+text[tailStart:], c.names, c.gauge)
				if named := c.without(text, headEnd, tailStart, names, back, limit); named.Text != "" {
					return named, true
				}
			}
			return short, true
		}
		room = room * 4 / 5
	}
	return short, false
}

// without returns the text with text[from:to] replaced by a note that lists names; empty if that is over limit.
func (c cutter) without(text string, from, to int, names, back string, limit uint64) (short budget.Piece) {
	head, ok := c.lines.UpTo(from + 1) // the note begins with the break that ends the line
	tail, whole := c.lines.UpTo(to)
	if ok && whole && text[from] == '\n' {
		note := c.gauge.Piece(cutNote(1+tail.Chars-head.Chars, 1+tail.Breaks-head.Breaks, names, back)[1:])
		if short.Cost = head.Cost + note.Cost + c.lines.Whole().Cost - tail.Cost; c.gauge.Tokens(short.Cost) <= limit {
			short.Text = text[:from+1] + note.Text + text[to:]
		}
		return short
	}
	gap := text[from:to]
	short = c.gauge.Piece(text[:from] + cutNote(utf8.RuneCountInString(gap), strings.Count(gap, "\n"), names, back) + text[to:])
	if c.gauge.Tokens(short.Cost) > limit {
		return budget.Piece{}
	}
	return short
}

func cutNote(chars, lines int, names, back string) string {
	if names != "" {
		names = ", with the names " + names
	}
	return fmt.Sprintf("\n[contextd: %d chars, %d lines cut here%s; %s]\n", chars, lines, names, back)
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
