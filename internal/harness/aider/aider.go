// Package aider reads the chat history of aider: a Markdown file with all chats of a folder.
// docs/harness/aider.md describes the format and the mapping.
package aider

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Name of the harness.
const Name = "aider"

// Harness is aider.
var Harness = transcript.Harness{Name: Name, Aliases: []string{"aider-md"}, Detect: detect, Read: read}

// labelStarted is when a chat began, in local time: the file does not name the zone.
const labelStarted = "aider.started"

// The prefixes of lines.
const (
	chatMark   = "# aider chat started at "
	userMark   = "#### "
	outputMark = "> "
)

func detect(p transcript.Probe) bool { return strings.HasPrefix(p.Line, chatMark) }

// asking are the commands whose arguments aider sends to the model as a prompt.
var asking = transcript.Tags("/ask", "/code", "/architect", "/context")

var (
	begins  = regexp.MustCompile(`^# aider chat started at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d *$`)
	model   = regexp.MustCompile(`^(?:Main model|Models?): (\S+) with `)
	version = regexp.MustCompile(`^Aider (v\S+)`)
	applied = regexp.MustCompile(`^Applied edit to (.+)$`)
	tokens  = regexp.MustCompile(`^Tokens: ([\d.,]+)(k|M)? sent,(?: ([\d.,]+)(k|M)? cache write,)?(?: ([\d.,]+)(k|M)? cache hit,)? ([\d.,]+)(k|M)? received`)
	fences  = regexp.MustCompile("^(`{3,}|~{3,})")
)

type reader struct {
	out     *transcript.Builder
	session *transcript.SessionBuilder
	chats   int
	model   string
	reply   []string // the words of the last reply, until the user's next prompt
	// mark is the prefix of the lines of the current entry; "" for a reply.
	mark  string
	first int
	text  []byte
	// open is set within an output of aider that spans several lines.
	open bool
	// fence is the fence that ends the current code block of a reply; "" outside of one.
	fence string
}

// read reads all chats of a file; each is a session.
func read(in io.Reader) (transcript.Transcript, error) {
	r := &reader{out: transcript.NewBuilder(Name, in)}
	err := transcript.ReadText(in, r.line)
	r.flush()
	return r.out.Finish(err)
}

// line reads a line, and returns how many bytes its entry has so far.
func (r *reader) line(number int, text string) int {
	text = strings.TrimSuffix(text, "\r")
	mark := r.markOf(text)
	if mark != r.mark || mark == chatMark {
		r.flush()
	}
	if mark == chatMark {
		r.begin(text[len(chatMark):])
		return 0
	}
	if mark != "" {
		text = strings.TrimRight(strings.TrimPrefix(text, mark), " ")
	}
	if len(r.text) == 0 {
		if r.mark, r.first = mark, number; text == "" && mark == "" {
			return 0
		}
	}
	r.text = append(append(r.text, text...), '\n')
	return len(r.text)
}

// markOf is the prefix of the entry to which a line belongs. aider ends its own lines and the user's with two
// spaces; headings and quotations of the model do not end so. An output of aider that spans lines has the
// prefix on the first and the two spaces on the last. In a code block all lines are the model's, until a
// prompt of the user, aider's token count, or an interruption.
func (r *reader) markOf(text string) string {
	ended := strings.HasSuffix(text, "  ") && strings.TrimSpace(text) != ""
	following := r.mark == userMark || r.mark == outputMark // directly after such a line
	mark := ""
	switch {
	case begins.MatchString(text):
		mark = chatMark
	case ended && strings.HasPrefix(text, userMark):
		mark = userMark
	case strings.HasPrefix(text, outputMark) && (ended || following), r.open:
		mark = outputMark
	}
	r.open = mark == outputMark && !ended
	fence := fences.FindString(text)
	switch {
	case mark == chatMark, mark == userMark, strings.HasPrefix(text, "> Tokens: "), strings.HasPrefix(text, "> ^C"):
		r.fence = ""
	case r.fence != "":
		if strings.TrimSpace(text) == r.fence {
			r.fence = ""
		}
		r.open = false
		return ""
	case mark == "":
		r.fence = fence
	}
	return mark
}

func (r *reader) begin(started string) {
	suffix := ""
	if r.chats++; r.chats > 1 {
		suffix = strconv.Itoa(r.chats)
	}
	r.session, r.model, r.reply = r.out.Session(suffix), "", nil
	r.session.Label(transcript.LabelHarness, Name)
	r.session.Label(labelStarted, started)
}

// flush makes an event of the current entry.
func (r *reader) flush() {
	text := strings.Trim(string(r.text), "\n")
	mark, entry := r.mark, transcript.Entry{Line: r.first, ID: fmt.Sprintf("line-%d", r.first)}
	r.text, r.mark = r.text[:0], ""
	if text == "" {
		return
	}
	if r.session == nil {
		r.out.Warn(r.first, "what comes before the first chat was not read")
		return
	}
	if clean := transcript.Clean(text); clean != text {
		r.out.Warn(entry.Line, "NUL or invalid UTF-8 in a string replaced by U+FFFD")
		text = clean
	}
	command, rest, _ := strings.Cut(text, " ")
	switch {
	case mark == outputMark:
		r.output(entry, text)
		return
	case mark == userMark && asking[command] && strings.TrimSpace(rest) != "":
		entry.Label("aider.command", command)
		text = strings.TrimSpace(rest)
	case mark == userMark && (strings.HasPrefix(text, "/") || strings.HasPrefix(text, "!") || text == "<blank>"):
		r.custom(entry, "command", text)
		return
	}
	m := &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: text}}}
	if words := strings.Fields(text); mark == "" {
		m.Role, m.Model, r.reply = eventlog.RoleAssistant, r.model, words
	} else {
		if slices.Equal(words, r.reply) { // the architect's plan, which aider gives the editor as a prompt
			entry.Label(transcript.LabelInjected, "true")
		}
		r.reply = nil
	}
	entry.Body, entry.Native = m, transcript.Object("text", text)
	r.session.Append(entry)
}

func (r *reader) custom(entry transcript.Entry, kind, text string) {
	entry.Native = transcript.Object("text", text)
	r.session.Custom(entry, kind)
}

// output keeps an output of aider as a custom event, and reads from it the model, the version, the changed
// files, and the usage of the reply before.
func (r *reader) output(entry transcript.Entry, text string) {
	var changed []string
	for line := range strings.SplitSeq(text, "\n") {
		if m := model.FindStringSubmatch(line); m != nil {
			r.model = m[1]
		}
		if m := version.FindStringSubmatch(line); m != nil {
			r.session.Label(transcript.LabelVersion, m[1])
		}
		if m := applied.FindStringSubmatch(line); m != nil {
			changed = append(changed, m[1])
		}
		if m := tokens.FindStringSubmatch(line); m != nil {
			u := transcript.Usage{Prompt: count(m[1], m[2]), CacheWrite: count(m[3], m[4]), CacheRead: count(m[5], m[6]), Output: count(m[7], m[8])}
			for k, v := range u.Labels() {
				entry.Label(k, v)
			}
		}
	}
	entry.Labels = transcript.WithFilesChanged(entry.Labels, changed)
	r.custom(entry, "output", text)
}

// count parses a number as aider writes it, such as 8,985 or 9.3k.
func count(number, unit string) transcript.Count {
	n, err := strconv.ParseFloat(strings.ReplaceAll(number, ",", ""), 64)
	if err != nil {
		return 0
	}
	switch unit {
	case "k":
		n *= 1e3
	case "M":
		n *= 1e6
	}
	return transcript.Count(min(max(n, 0), 1e12))
}
