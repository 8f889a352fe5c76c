package recall

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/pointers"
	"github.com/contextd/contextd/internal/quote"
	"github.com/contextd/contextd/internal/reduce"
)

// The limits of one search.
const (
	longestQuery = 1000 // bytes
	// largestProgram is how many instructions a compiled pattern has at most.
	largestProgram = 1000
	// scannedBytes is how much of the log one search reads for a text. For a pattern it is divided by the
	// cost of the pattern for each byte.
	scannedBytes  = 256 << 20
	patternFactor = 8  // a small pattern costs this much more than a text
	programShare  = 32 // and the same again for each 32 instructions
	// mostOfEvent is how many places of one event are listed, which may have a place in each of many thousand blocks.
	mostOfEvent    = most
	excerptsOfHit  = 3
	excerptContext = 80 // runes before and after a match
)

// query is what a search looks for.
type query struct {
	asked   string         // as the model wrote it: text: "x"
	lowered string         // a text in lower case
	match   *regexp.Regexp // nil for a text, which is faster to find without one
	weight  int            // cost for each byte
}

func readQuery(a arguments) (query, error) {
	text, err := a.text("text")
	if err != nil {
		return query{}, err
	}
	pattern, err := a.text("pattern")
	if err != nil {
		return query{}, err
	}
	switch {
	case (text == "") == (pattern == ""):
		return query{}, mistaken("%s needs text or pattern, one of them: %s(text: \"undefined: x\")", SearchLog, SearchLog)
	case len(text)+len(pattern) > longestQuery:
		return query{}, mistaken("text and pattern of %s must not be longer than %d bytes; a few words that stand together are enough", SearchLog, longestQuery)
	case text != "":
		return query{asked: fmt.Sprintf("text: %q", text), lowered: strings.ToLower(strings.ToValidUTF8(text, "\uFFFD")), weight: 1}, nil
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return query{}, mistaken("pattern of %s is no regular expression of RE2 (%s); look-around and backreferences do not exist there, and text: takes any text as it is", SearchLog, quote.Line(err.Error()))
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil || len(program.Inst) > largestProgram {
		return query{}, mistaken("pattern of %s is too costly: it has large repetitions; leave them out, or look for a part of it as text", SearchLog)
	}
	expression, err := regexp.Compile(pattern)
	if err != nil {
		return query{}, mistaken("pattern of %s is no regular expression: %s", SearchLog, quote.Line(err.Error()))
	}
	if expression.MatchString("") {
		return query{}, mistaken("pattern of %s matches the empty text, and so every line; make it say what must be there", SearchLog)
	}
	weight := patternFactor * (1 + len(program.Inst)/programShare)
	return query{asked: fmt.Sprintf("pattern: %q", pattern), match: expression, weight: weight}, nil
}

// hit is a block with matches.
type hit struct {
	event    eventlog.Seq
	block    int
	what     string
	lines    int // how many lines match
	excerpts []string
	// more is how many other places the event has that are not listed. Only the event's last hit in the answer has it.
	more int
}

// search looks for a text or a pattern, from the newest event back.
func (s Session) search(ctx context.Context, a arguments) (string, error) {
	q, err := readQuery(a)
	if err != nil {
		return "", err
	}
	before, err := a.number("before", largestInt)
	if err != nil {
		return "", err
	}
	limit, err := a.number("limit", most)
	if err != nil {
		return "", err
	}
	if limit == 0 {
		limit = usual
	}
	info, err := s.Log.Session(ctx, s.ID)
	if err != nil {
		return "", err
	}
	newest := info.Head
	if before > 0 {
		newest = min(newest, eventlog.Seq(before)-1)
	}
	hits, through, err := s.find(ctx, q, newest, int(limit))
	if err != nil {
		return "", err
	}
	return s.report(q, hits, newest, through, before > 0 && info.Head > 0), nil
}

// find returns hits, newest first, and the oldest event that was searched. It stops after an event if there are limit
// hits or the search has reached its cost limit.
func (s Session) find(ctx context.Context, q query, newest eventlog.Seq, limit int) (hits []hit, through eventlog.Seq, err error) {
	facts := pointers.NewReader(s.Log, s.ID)
	most := scannedBytes / q.weight
	through = newest + 1
	window := eventlog.Seq(8)
	for scanned, alone := 0, false; through > 1 && len(hits) < limit && scanned < most; {
		from := through - min(window, through-1)
		found, size, err := s.within(ctx, facts, q, from, through-1, most)
		if err != nil {
			return nil, 0, err
		}
		if size > most {
			switch {
			case from < through-1:
				// Search only the newest event of the window, and stop: the cost limit is reached.
				window, alone = 1, true
				continue
			case len(hits) == 0:
				return nil, 0, mistaken("%s is too costly for event %d, of more than %d bytes; leave out repetitions, look for a part of it as text, or go on with %s(%s, before: %d)",
					q.asked, from, most, SearchLog, q.asked, from)
			}
			break
		}
		through = from
		slices.Reverse(found)
		if hits = append(hits, found...); alone {
			break
		}
		// The next window is as long as the remaining cost allows, if events are as large there as here.
		scanned += size
		each := scanned/int(newest+1-through) + 1
		window = min(2*window, 1024, eventlog.Seq(max(most-scanned, 0)/each+1))
	}
	if len(hits) > limit {
		// All hits of the last event are returned, so that a search with before continues after it.
		last := hits[limit-1].event
		end := limit
		for end < len(hits) && hits[end].event == last {
			end++
		}
		hits, through = hits[:end], last
	}
	return hits, through, nil
}

// within returns the hits in events from..to, oldest first, and how many bytes were searched. It stops after most
// bytes.
func (s Session) within(ctx context.Context, facts *pointers.Reader, q query, from, to eventlog.Seq, most int) (found []hit, size int, err error) {
	for event, err := range s.Log.Read(ctx, s.ID, from, to) {
		if err != nil {
			return nil, 0, err
		}
		first := len(found)
		more := 0
		for i, b := range slices.Backward(pointers.Blocks(event)) {
			searched := searchable(b)
			if size += len(searched); size > most {
				return nil, size, nil
			}
			h := q.in(searched)
			if h == nil {
				continue
			}
			tool, err := toolOf(ctx, facts, event.Seq, b)
			switch {
			case err != nil:
				return nil, 0, err
			case s.own(tool, b):
			case len(found)-first == mostOfEvent:
				more++
			default:
				h.event, h.block, h.what = event.Seq, i, describe(event, b, tool)
				found = append(found, *h)
			}
		}
		slices.Reverse(found[first:])
		if more > 0 {
			found[first].more = more
		}
	}
	return found, size, nil
}

// searchable returns the text of a block that is searched: what recall returns of it and, for a call, also the
// strings in its arguments without JSON escapes.
func searchable(b eventlog.Block) string {
	call, ok := b.(eventlog.ToolCall)
	if !ok {
		return text(b)
	}
	if !strings.Contains(call.Arguments, `\`) {
		return call.Arguments + "\n" + call.Name
	}
	var searched strings.Builder
	searched.WriteString(call.Arguments + "\n" + call.Name) // first, so that line numbers are those that recall uses
	decoder := json.NewDecoder(strings.NewReader(call.Arguments))
	decoder.UseNumber()
	for {
		token, err := decoder.Token()
		if err != nil {
			return searched.String()
		}
		if written, ok := token.(string); ok {
			searched.WriteByte('\n')
			searched.WriteString(written)
		}
	}
}

// in finds the matching lines of a text; nil if there are none.
func (q query) in(text string) *hit {
	searched := text
	if q.match == nil {
		searched = strings.ToLower(text)
	}
	var h hit
	shown := original{text: text}
	for begin, line := 0, 1; begin < len(searched); {
		from, to, ok := q.next(searched, begin)
		if !ok {
			break
		}
		line += strings.Count(searched[begin:from], "\n")
		h.lines++
		if len(h.excerpts) < excerptsOfHit {
			first, end := from, to
			if q.match == nil {
				first, end = shown.at(from), shown.at(to)
			}
			h.excerpts = append(h.excerpts, fmt.Sprintf("%d: %s", line, excerpt(text, first, end)))
		}
		after := strings.IndexByte(searched[to:], '\n')
		if after < 0 {
			break
		}
		line += strings.Count(searched[from:to], "\n") + 1
		begin = to + after + 1
	}
	if h.lines == 0 {
		return nil
	}
	return &h
}

// original maps offsets in the lower case of a text to offsets in the text: lower case may have a different
// length. Calls must come with ascending offsets.
type original struct {
	text           string
	place, lowered int
}

func (o *original) at(lowered int) int {
	for o.lowered < lowered {
		r, size := utf8.DecodeRuneInString(o.text[o.place:])
		o.place += size
		o.lowered += utf8.RuneLen(unicode.ToLower(r))
	}
	return o.place
}

// next returns the first match at or after begin, the start of a line. A text may match across lines. A pattern is
// matched against one line at a time, so that the cost is linear in the length.
func (q query) next(searched string, begin int) (from, to int, ok bool) {
	if q.match == nil {
		at := strings.Index(searched[begin:], q.lowered)
		return begin + at, begin + at + len(q.lowered), at >= 0
	}
	for line := range strings.Lines(searched[begin:]) {
		if at := q.match.FindStringIndex(strings.TrimSuffix(line, "\n")); at != nil {
			return begin + at[0], begin + at[1], true
		}
		begin += len(line)
	}
	return 0, 0, false
}

// excerpt returns the part of a match's line that is near the match.
func excerpt(text string, from, to int) string {
	begin := strings.LastIndexByte(text[:from], '\n') + 1
	end := len(text)
	if n := strings.IndexByte(text[from:], '\n'); n >= 0 {
		end = from + n
	}
	to = min(to, end)
	before, match, after := []rune(text[begin:from]), []rune(text[from:to]), []rune(text[to:end])
	const longestMatch = 2 * excerptContext
	if len(match) > longestMatch {
		match, after = match[:longestMatch], []rune("…")
	}
	if len(before) > excerptContext {
		before = append([]rune("…"), before[len(before)-excerptContext:]...)
	}
	if len(after) > excerptContext {
		after = append(after[:excerptContext:excerptContext], '…')
	}
	return strings.Map(func(r rune) rune {
		if quote.Unseen(r) {
			return ' '
		}
		return r
	}, string(before)+string(match)+string(after))
}

// report writes the answer of a search.
func (s Session) report(q query, hits []hit, newest, through eventlog.Seq, limited bool) string {
	searched := "in this conversation"
	if limited || through > 1 {
		searched = fmt.Sprintf("in events %d to %d of this conversation", through, newest)
	}
	switch {
	case newest == 0 && limited:
		searched = "before event 1, the first of this conversation"
	case newest == 0:
		searched = "in this conversation, of which nothing is there yet"
	}
	more := ""
	if through > 1 {
		more = fmt.Sprintf(" Before them: %s(%s, before: %d).", SearchLog, q.asked, through)
	}
	if len(hits) == 0 {
		return fmt.Sprintf("[contextd: %s is nowhere %s.%s]", q.asked, searched, more)
	}
	places := len(hits)
	for _, h := range hits {
		places += h.more
	}
	var out strings.Builder
	fmt.Fprintf(&out, "[contextd: %s for %s %s, the newest first, with the numbers of lines.%s %s(pointer: %q) returns a body. %s",
		count(places, "place"), q.asked, searched, more, s.Name, reduce.Pointer(hits[0].event, hits[0].block), data)
	for _, h := range hits {
		fmt.Fprintf(&out, "%s %s, %s\n", reduce.Pointer(h.event, h.block), h.what, count(h.lines, "line"))
		for _, e := range h.excerpts {
			fmt.Fprintf(&out, "  %s\n", e)
		}
		if left := h.lines - len(h.excerpts); left > 0 {
			fmt.Fprintf(&out, "  and %s more\n", count(left, "line"))
		}
		if h.more > 0 {
			fmt.Fprintf(&out, "  and %s more in event %d\n", count(h.more, "place"), h.event)
		}
	}
	return out.String()
}
