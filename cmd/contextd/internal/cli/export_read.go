package cli

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/contextd/contextd/cmd/contextd/internal/page"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// The formats for people.
const (
	formatMarkdown = "markdown"
	formatHTML     = "html"
)

func readingFormats() []string { return []string{formatMarkdown, formatHTML} }

// reader writes a session, or one model call, in a format for people: a title, facts about it, and entries.
type reader interface {
	begin(title string, facts [][2]string)
	entry(e readEntry)
	end() error
}

// readEntry is an event of a log, or a message of a context.
type readEntry struct {
	// kind is the role, or the kind of an event that is no message. head says where the entry comes from.
	// notes say what was done to it.
	kind, head string
	notes      []string
	parts      []readPart
}

// readPart is a block of an entry.
type readPart struct {
	// label says what the part is; empty for plain text.
	label string
	text  string
	// json is set where the text is JSON. aside is set for what readers skip at first: results and reasoning.
	json, aside bool
	// image is the data of a picture, mime its type.
	image []byte
	mime  string
}

func newReader(format string, w io.Writer) reader {
	if format == formatHTML {
		return &htmlReader{w: w}
	}
	return &markdownReader{w: w}
}

// exportSession writes the events of a session as they arrive.
func exportSession(cmd *cobra.Command, api api, session string, out reader) error {
	info, err := api.GetSession(cmd.Context(), &contextdv1.GetSessionRequest{SessionId: session})
	if err != nil {
		return err
	}
	s := info.GetSession()
	facts := [][2]string{{"session", session}, {"events", fmt.Sprint(s.GetHeadSeq())}, {"model calls", fmt.Sprint(s.GetTurns())}}
	if len(s.GetLabels()) > 0 {
		facts = append(facts, [2]string{"labels", labels(s.GetLabels())})
	}
	stream, err := api.ReadEvents(cmd.Context(), &contextdv1.ReadEventsRequest{SessionId: session})
	if err != nil {
		return err
	}
	out.begin("Session "+session, facts)
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return out.end()
		}
		if err != nil {
			return err
		}
		for _, e := range resp.GetEvents() {
			out.entry(eventEntry(e))
		}
	}
}

// exportCall writes what the model was sent in one call: the messages of a recorded projection, and which
// events were dropped.
func exportCall(cmd *cobra.Command, api api, session, projection string, out reader) error {
	shown, err := render(cmd.Context(), api, session, projection)
	if err != nil {
		return err
	}
	p := shown.replay.GetReplayed()
	facts := [][2]string{
		{"session", session}, {"projection", shown.id()}, {"as of event", fmt.Sprint(p.GetAsOfSeq())},
		{"messages", fmt.Sprint(len(shown.messages))}, {"tokens", fmt.Sprint(shown.tokens())}, {"policy", dash(p.GetPolicy())},
		{"prefix hash", p.GetPrefixHash()},
	}
	if n := len(p.GetDroppedSeqs()); n > 0 {
		facts = append(facts, [2]string{"events dropped", seqsText(p.GetDroppedSeqs())})
	}
	out.begin(fmt.Sprintf("What the model saw in %s of session %s", shown.id(), session), facts)
	reasons := shown.reasons()
	for i, m := range shown.messages {
		v := shown.view(i, reasons)
		e := readEntry{kind: v.Role, head: fmt.Sprintf("message %d, %s", v.Index, counted(v.Tokens, "token")), parts: readParts(m.GetMessage().GetBlocks())}
		if len(v.Seqs) > 0 {
			e.head += ", of event " + seqsText(v.Seqs)
		}
		if v.Origin != "verbatim" {
			e.notes = append(e.notes, v.Origin)
		}
		if v.Cause != "" {
			e.notes = append(e.notes, "by "+v.Cause)
		}
		if v.Reason != "" {
			e.notes = append(e.notes, v.Reason)
		}
		out.entry(e)
	}
	return errors.Join(out.end(), shown.check())
}

func eventEntry(e *contextdv1.Event) readEntry {
	kind, content := describe(e)
	out := readEntry{kind: kind, head: fmt.Sprintf("event %d, turn %d, %s", e.GetSeq(), e.GetTurn(), when(e.GetTime()))}
	if m := e.GetMessage(); m != nil {
		out.parts = readParts(m.GetBlocks())
		if m.GetModel() != "" {
			out.notes = append(out.notes, m.GetModel())
		}
		if m.GetPinned() {
			out.notes = append(out.notes, "pinned")
		}
		return out
	}
	out.parts = []readPart{{text: content}}
	return out
}

func readParts(blocks []*contextdv1.Block) []readPart {
	var out []readPart
	for _, b := range blocks {
		switch k := b.GetKind().(type) {
		case *contextdv1.Block_Text:
			out = append(out, readPart{text: k.Text.GetText()})
		case *contextdv1.Block_Thinking:
			if k.Thinking.GetText() == "" {
				out = append(out, readPart{label: "reasoning, sealed"})
				continue
			}
			out = append(out, readPart{label: "reasoning", text: k.Thinking.GetText(), aside: true})
		case *contextdv1.Block_ToolCall:
			out = append(out, readPart{label: "calls " + k.ToolCall.GetName(), text: string(k.ToolCall.GetArgumentsJson()), json: true})
		case *contextdv1.Block_ToolResult:
			label := "result"
			if name := k.ToolResult.GetToolName(); name != "" {
				label += " of " + name
			}
			if k.ToolResult.GetIsError() {
				label += ", failed"
			}
			inner := readParts(k.ToolResult.GetContent())
			for i := range inner {
				inner[i].aside = true
				inner[i].label = strings.TrimSuffix(label+": "+inner[i].label, ": ")
			}
			if len(inner) == 0 {
				inner = []readPart{{label: label + ", empty"}}
			}
			out = append(out, inner...)
		case *contextdv1.Block_Media:
			out = append(out, mediaPart(k.Media))
		default:
			out = append(out, readPart{label: "of the provider", text: describeBlock(b), aside: true})
		}
	}
	return out
}

// pictures are the image types that a page shows: a browser executes nothing in them.
var pictures = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

func mediaPart(m *contextdv1.Media) readPart {
	label := "media, "
	if mime := m.GetMimeType(); mime != "" {
		label += mime + ", "
	}
	out := readPart{label: label + counted(len(m.GetData()), "byte"), text: m.GetUri()}
	if slices.Contains(pictures, m.GetMimeType()) {
		out.image, out.mime = m.GetData(), m.GetMimeType()
	}
	return out
}

// markdownReader writes Markdown. All content of the session is in fences, so that none of it is read as
// markup.
type markdownReader struct {
	w   io.Writer
	err error
}

func (m *markdownReader) printf(format string, values ...any) {
	if m.err == nil {
		_, m.err = fmt.Fprintf(m.w, format, values...)
	}
}

func (m *markdownReader) begin(title string, facts [][2]string) {
	m.printf("# %s\n\n", codeSpan(title))
	for _, f := range facts {
		m.printf("- %s: %s\n", f[0], codeSpan(f[1]))
	}
}

func (m *markdownReader) entry(e readEntry) {
	m.printf("\n## %s: %s\n", e.kind, e.head)
	for _, n := range e.notes {
		m.printf("\n*%s*\n", codeSpan(n))
	}
	for _, p := range e.parts {
		if p.label != "" {
			m.printf("\n%s\n", codeSpan(p.label))
		}
		if p.text != "" {
			info := "text"
			if p.json {
				info = "json"
			}
			m.printf("\n%s\n", fenced(p.text, info))
		}
	}
}

func (m *markdownReader) end() error { return m.err }

// codeSpan is a text as a code span on one line, in which nothing is markup.
func codeSpan(text string) string {
	text = strings.TrimSpace(strings.Join(strings.Fields(page.Visible(text)), " "))
	if text == "" {
		return "-"
	}
	ticks := strings.Repeat("`", longestRun(text, '`')+1)
	if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") {
		text = " " + text + " "
	}
	return ticks + text + ticks
}

// fenced is a text in a fence that is longer than any run of backquotes in it.
func fenced(text, info string) string {
	text = page.Visible(text)
	// CommonMark also ends lines at a carriage return.
	text = strings.ReplaceAll(text, "\r", "\n")
	fence := strings.Repeat("`", max(3, longestRun(text, '`')+1))
	return fence + info + "\n" + strings.TrimSuffix(text, "\n") + "\n" + fence
}

// longestRun is the length of the longest run of a character.
func longestRun(text string, of byte) int {
	longest, n := 0, 0
	for i := range len(text) {
		if text[i] != of {
			n = 0
			continue
		}
		n++
		longest = max(longest, n)
	}
	return longest
}

// htmlReader writes one self-contained HTML page.
type htmlReader struct {
	w io.Writer
	*page.Page
}

func (h *htmlReader) begin(title string, facts [][2]string) {
	h.Page = page.Begin(h.w, title)
	h.In("h1", "", title).Raw("\n<table class=\"facts\"><tbody>\n")
	for _, f := range facts {
		h.Raw("<tr>").In("td", "", f[0]).In("td", "left", f[1]).Raw("</tr>\n")
	}
	h.Raw("</tbody></table>\n")
}

func (h *htmlReader) entry(e readEntry) {
	class := "other"
	if slices.Contains([]string{"system", "user", "assistant", "tool"}, e.kind) {
		class = e.kind
	}
	h.Rawf(`<article class="event %s"><header>`, class).In("b", "", e.kind).Text(e.head)
	for _, n := range e.notes {
		h.In("span", "mark", n)
	}
	h.Raw("</header>\n")
	for _, p := range e.parts {
		h.part(p)
	}
	h.Raw("</article>\n")
}

// shortLines is how many lines of a result are shown without unfolding it.
const shortLines = 12

func (h *htmlReader) part(p readPart) {
	folded := p.aside && strings.Count(p.text, "\n") >= shortLines
	switch {
	case folded:
		h.Raw("<details><summary>").Text(fmt.Sprintf("%s, %s", p.label, counted(strings.Count(p.text, "\n")+1, "line"))).Raw("</summary>")
	case p.label != "":
		h.In("p", "soft small", p.label)
	}
	if len(p.image) > 0 {
		h.Raw(`<img alt="` + page.Escape(p.label) + `" src="data:` + p.mime + `;base64,` + base64.StdEncoding.EncodeToString(p.image) + `">`)
	}
	if p.text != "" {
		h.In("pre", "", p.text)
	}
	if folded {
		h.Raw("</details>")
	}
	h.Raw("\n")
}

func (h *htmlReader) end() error { return h.End() }
