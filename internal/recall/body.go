package recall

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/pointers"
	"github.com/contextd/contextd/internal/quote"
	"github.com/contextd/contextd/internal/reduce"
)

// body returns one page of the block that a pointer names.
func (s Session) body(ctx context.Context, a arguments) (string, error) {
	pointer, err := a.text("pointer")
	if err != nil {
		return "", err
	}
	page, err := a.number("page", largestInt)
	if err != nil {
		return "", err
	}
	line, err := a.number("line", largestInt)
	if err != nil {
		return "", err
	}
	if page > 0 && line > 0 {
		return "", mistaken("give page or line, not both")
	}
	at, err := s.parsePointer(pointer)
	if err != nil {
		return "", err
	}
	event, block, err := pointers.Resolve(ctx, s.Log, s.ID, reduce.Pointer(at.Seq, at.Block))
	if missing, ok := errors.AsType[*eventlog.NotFoundError](err); ok && missing.Kind != "session" {
		return "", s.missing(ctx, at)
	}
	if err != nil {
		return "", err
	}
	tool, err := toolOf(ctx, pointers.NewReader(s.Log, s.ID), at.Seq, block)
	if err != nil {
		return "", err
	}
	what := describe(event, block, tool)
	name := reduce.Pointer(at.Seq, at.Block)
	pages := s.pages(text(block))
	last := pages[len(pages)-1]
	found := 0
	switch {
	case page > uint64(len(pages)):
		return "", mistaken("%s has %s, so page %d is past the end", name, count(len(pages), "page"), page)
	case line > uint64(last.through):
		return "", mistaken("%s has %s, so line %d is past the end", name, count(last.through, "line"), line)
	case page > 0:
		found = int(page) - 1
	default:
		for line > uint64(pages[found].through) {
			found++
		}
	}
	p := pages[found]
	where := "whole"
	if len(pages) > 1 {
		where = fmt.Sprintf("page %d of %d, lines %d to %d of %d", found+1, len(pages), p.from, p.through, last.through)
		if found+1 < len(pages) {
			where += fmt.Sprintf("; next: %s(pointer: %q, page: %d)", s.Name, name, found+2)
		}
	}
	return fmt.Sprintf("[contextd: %s, %s, in event %d; %s. %s%s", name, what, at.Seq, where, data, p.text), nil
}

// parsePointer reads a pointer as models write it: perhaps without its prefix, or in quotes.
func (s Session) parsePointer(written string) (eventlog.Place, error) {
	trimmed := strings.Trim(written, " \t\n\"'`[]()<>.,;")
	if trimmed != "" && trimmed[0] >= '0' && trimmed[0] <= '9' {
		trimmed = "ctx:" + trimmed
	}
	seq, block, err := reduce.ParsePointer(trimmed)
	switch {
	case written == "":
		return eventlog.Place{}, mistaken("%s needs a pointer, such as %s(pointer: \"ctx:12.0\")", s.Name, s.Name)
	case err != nil:
		return eventlog.Place{}, mistaken("%s is no pointer; pointers look like ctx:12.0 and are in what replaces something, or %s(text: …) finds one", quoted(written), SearchLog)
	}
	return eventlog.Place{Seq: seq, Block: block}, nil
}

// missing returns the error for a pointer to nothing; it names pointers nearby that exist.
func (s Session) missing(ctx context.Context, at eventlog.Place) error {
	info, err := s.Log.Session(ctx, s.ID)
	if err != nil {
		return err
	}
	near, err := s.near(ctx, min(at.Seq, info.Head), info.Head)
	if err != nil {
		return err
	}
	ends := ""
	if at.Seq > info.Head {
		ends = fmt.Sprintf(", since the log ends with event %d", info.Head)
	}
	if len(near) == 0 {
		return mistaken("%s names nothing%s", reduce.Pointer(at.Seq, at.Block), ends)
	}
	return mistaken("%s names nothing%s; near it are %s", reduce.Pointer(at.Seq, at.Block), ends, strings.Join(near, ", "))
}

// near names at most three blocks of the events around one, each with a description.
func (s Session) near(ctx context.Context, middle, head eventlog.Seq) ([]string, error) {
	const around, most = 16, 3
	facts := pointers.NewReader(s.Log, s.ID)
	var near []string
	for distance := eventlog.Seq(0); distance <= around && len(near) < most; distance++ {
		for _, seq := range []eventlog.Seq{middle - min(distance, middle), middle + distance} {
			if seq == 0 || seq > head || distance == 0 && len(near) > 0 {
				continue
			}
			here, err := s.blocksOf(ctx, facts, seq, most)
			if err != nil {
				return nil, err
			}
			near = append(near, here...)
		}
	}
	return near[:min(len(near), most)], nil
}

// blocksOf names the first blocks of an event, each with a description.
func (s Session) blocksOf(ctx context.Context, facts *pointers.Reader, seq eventlog.Seq, most int) ([]string, error) {
	var out []string
	for event, err := range s.Log.Read(ctx, s.ID, seq, seq) {
		if err != nil {
			return nil, err
		}
		blocks := pointers.Blocks(event)
		for i, b := range blocks[:min(len(blocks), most)] {
			tool, err := toolOf(ctx, facts, seq, b)
			if err != nil {
				return nil, err
			}
			out = append(out, reduce.Pointer(seq, i)+" ("+describe(event, b, tool)+")")
		}
	}
	return out, nil
}

// toolOf returns the tool of a call or of a result of event seq; empty for any other block.
func toolOf(ctx context.Context, facts *pointers.Reader, seq eventlog.Seq, b eventlog.Block) (string, error) {
	switch b := b.(type) {
	case eventlog.ToolCall:
		return b.Name, nil
	case eventlog.ToolResult:
		return facts.ToolOf(ctx, b, seq)
	default:
		return "", nil
	}
}

// describe says what kind of block it is, for the model.
func describe(e eventlog.Event, b eventlog.Block, tool string) string {
	switch b := b.(type) {
	case eventlog.ToolCall:
		return "the call of " + toolName(tool)
	case eventlog.ToolResult:
		if b.IsError {
			return "the result of " + toolName(tool) + ", which failed"
		}
		return "the result of " + toolName(tool)
	case eventlog.Thinking:
		return "reasoning"
	case eventlog.Media:
		return "media"
	case eventlog.ProviderBlock:
		return "a block of the provider's own"
	}
	switch m, ok := e.Body.(*eventlog.Message); {
	case !ok:
		return "the summary of a compaction"
	case m.Role == eventlog.RoleAssistant:
		return "what you said"
	default:
		return "a " + m.Role.String() + " message"
	}
}

// toolName returns a tool's name in a form that fits in a line.
func toolName(name string) string {
	if name == "" {
		return "a tool"
	}
	return quote.Name(name)
}

// text returns what a model can read of a block, or a description of what it cannot.
func text(b eventlog.Block) string {
	switch b := b.(type) {
	case eventlog.Text:
		return b.Text
	case eventlog.Thinking:
		if b.Text == "" && b.Sealed() {
			return "[reasoning that only its provider can read]"
		}
		return b.Text
	case eventlog.ToolCall:
		return b.Arguments
	case eventlog.ToolResult:
		texts := make([]string, len(b.Content))
		for i, c := range b.Content {
			texts[i] = text(c)
		}
		return strings.Join(texts, "\n")
	case eventlog.Media:
		if b.URI != "" {
			return fmt.Sprintf("[%s at %s; it is not shown, since this is text alone]", b.MIMEType, b.URI)
		}
		return fmt.Sprintf("[%s, %d bytes; it is not shown, since this is text alone]", b.MIMEType, len(b.Data))
	case eventlog.ProviderBlock:
		return b.JSON
	default:
		return ""
	}
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// page is a part of a body: its lines from..through, counted from 1.
type page struct {
	text          string
	from, through int
}

// pages divides a body into pages of at most PageTokens, at line ends if possible. There is at least one page. It
// takes time linear in the body.
func (s Session) pages(body string) []page {
	// A line is measured in pieces of at most this size, so that a page can end inside a long line, and no
	// piece exceeds a page.
	const longest = 256 // bytes, each at most a token
	var all []page
	var begin, end, from int
	line, cost := 1, uint64(0)
	for from = 1; end < len(body); {
		n := min(longest, len(body)-end)
		if line := strings.IndexByte(body[end:end+n], '\n') + 1; line > 0 {
			n = line
		} else if end+n < len(body) {
			for n > longest-utf8.UTFMax && !utf8.RuneStart(body[end+n]) {
				n--
			}
		}
		piece := s.Gauge.Piece(body[end : end+n]).Cost
		if end > begin && s.Gauge.Tokens(cost+piece) > s.PageTokens {
			last := line
			if body[end-1] == '\n' {
				last--
			}
			all = append(all, page{body[begin:end], from, last})
			begin, from, cost = end, line, 0
		}
		end, cost = end+n, cost+piece
		if body[end-1] == '\n' {
			line++
		}
	}
	if line > 1 && body[len(body)-1] == '\n' {
		line--
	}
	return append(all, page{body[begin:], from, line})
}

// PageTokens returns the size of pages if a policy clips results of more than limit tokens (0 is no limit): a
// page with its heading must not be clipped itself.
func PageTokens(limit uint64) uint64 {
	const usual, heading, least = 4000, 150, 256
	if limit == 0 {
		return usual
	}
	return min(usual, max(limit-min(limit, heading), least))
}
