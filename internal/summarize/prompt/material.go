package prompt

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/provider"
	"github.com/contextd/contextd/internal/quote"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/scrub"
)

// Every line of the material begins with mark. Every line of a quoted text has a further indent, so that it cannot be
// mistaken for the end of the material or for one of its headings.
const (
	mark   = "| "
	indent = mark + "  "
)

// Whole is the limit at which no text is shortened.
const Whole = math.MaxInt

const (
	frameOlder   = "The earlier record, which yours replaces:\n\n"
	framePending = "Reminders of the runtime that still hold:\n\n"
	frameSpan    = "The part of the session to be recorded, oldest first:\n\n"
	frameEnd     = "\nHere the material ends. Write the record.\n"
)

// Frame returns everything in a user prompt except the material.
func Frame() string { return frameOlder + "\n" + framePending + "\n" + frameSpan + frameEnd }

// Compose returns the user prompt. older is from Older, reminders from Reminders, and groups are from Group; older
// and reminders may be empty.
func Compose(older, reminders string, groups []string) string {
	var out strings.Builder
	if older != "" {
		out.WriteString(frameOlder)
		out.WriteString(older)
		out.WriteByte('\n')
	}
	if reminders != "" {
		out.WriteString(framePending)
		out.WriteString(reminders)
		out.WriteByte('\n')
	}
	out.WriteString(frameSpan)
	for _, g := range groups {
		out.WriteString(g)
	}
	out.WriteString(frameEnd)
	return out.String()
}

// Writer writes material. The zero value writes texts as they are.
type Writer struct {
	// Scrub, if set, replaces credentials in a text before the text is shortened.
	Scrub *scrub.Scrubber
}

// Older writes an earlier record as data, shortened to about limit bytes.
func (w Writer) Older(text string, limit int) string {
	if text == "" {
		return ""
	}
	out := writing{limit: limit, scrub: w.Scrub}
	out.body(text)
	return out.String()
}

// Group writes a group as data, each of its texts shortened to about limit bytes. It only names blocks that are
// sealed or not text.
func (w Writer) Group(g *reduce.Group, limit int) string {
	out := writing{limit: limit, scrub: w.Scrub}
	for m := range g.Messages {
		msg := &g.Messages[m]
		for i := range msg.Blocks {
			out.block(speaker(msg), &msg.Blocks[i])
		}
	}
	return out.String()
}

// Reminders writes reminders as data, each shortened to about limit bytes.
func (w Writer) Reminders(all []reduce.Reminder, limit int) string {
	out := writing{limit: limit, scrub: w.Scrub}
	for _, r := range all {
		fmt.Fprintf(&out, "%s[%s] reminder:\n", mark, reduce.Pointer(r.Seq, 0))
		out.body(r.Body)
	}
	return out.String()
}

// Stub writes a line for a group that is too large to be written.
func Stub(g *reduce.Group) string {
	return fmt.Sprintf("%s[%s] %d messages and %d calls that were too large are left out here\n", mark, reduce.Pointer(g.First, 0), len(g.Messages), len(g.Calls))
}

// speaker returns who wrote a message, so that a text that a runtime inserted with the user's role is not recorded as
// a wish of the user.
func speaker(m *reduce.Message) string {
	if m.Role == eventlog.RoleUser && !m.Human {
		return "runtime"
	}
	return m.Role.String()
}

// writing is the material as far as it is written.
type writing struct {
	strings.Builder
	limit int
	scrub *scrub.Scrubber
}

func (out *writing) block(role string, b *reduce.Block) {
	head := func(format string, args ...any) {
		out.WriteString(mark)
		if b.Seq != 0 {
			fmt.Fprintf(out, "[%s] ", reduce.Pointer(b.Seq, b.Index))
		}
		fmt.Fprintf(out, format, args...)
		out.WriteByte('\n')
	}
	if p, ok := b.Block.(eventlog.ProviderBlock); ok {
		if _, members := provider.Members(p); members {
			return // they say nothing to a reader
		}
	}
	switch v := b.Block.(type) {
	case eventlog.Text:
		head("%s:", role)
		out.body(v.Text)
	case eventlog.Thinking:
		if v.Text != "" {
			head("%s, to itself:", role)
			out.body(v.Text)
		}
	case eventlog.ToolCall:
		head("%s calls %s:", role, quote.Name(v.Name))
		out.body(v.Arguments)
	case eventlog.ToolResult:
		switch {
		case b.Seq == 0:
			head("call of %s was interrupted and has no result", quote.Name(v.ToolName))
			return
		case v.IsError:
			head("result of %s, failed:", quote.Name(v.ToolName))
		default:
			head("result of %s:", quote.Name(v.ToolName))
		}
		for _, c := range v.Content {
			out.content(c)
		}
	default:
		head("%s:", role)
		out.content(v)
	}
}

func (out *writing) content(b eventlog.Block) {
	switch v := b.(type) {
	case eventlog.Text:
		out.body(v.Text)
	case eventlog.Media:
		out.body("(" + v.MIMEType + ")")
	case eventlog.ProviderBlock:
		out.body(v.JSON)
	}
}

// breaks replaces all characters that some program treats as the end of a line.
var breaks = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

func (out *writing) body(text string) {
	text = breaks.Replace(strings.ToValidUTF8(shorten(out.scrub.Text(text), out.limit), "\uFFFD"))
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		out.WriteString(indent)
		out.WriteString(line)
		out.WriteByte('\n')
	}
}

// shorten keeps head and tail of a text, together about limit bytes, the head twice as long.
func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	head, tail := limit-limit/3, len(text)-limit/3
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	return fmt.Sprintf("%s\n(… %d bytes left out …)\n%s", text[:head], tail-head, text[tail:])
}
