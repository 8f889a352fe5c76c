package harness

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/contextd/contextd/internal/harness/aider"
	"github.com/contextd/contextd/internal/harness/antigravity"
	"github.com/contextd/contextd/internal/harness/atif"
	"github.com/contextd/contextd/internal/harness/chat"
	"github.com/contextd/contextd/internal/harness/claude"
	"github.com/contextd/contextd/internal/harness/codex"
	"github.com/contextd/contextd/internal/harness/copilot"
	"github.com/contextd/contextd/internal/harness/cursor"
	"github.com/contextd/contextd/internal/harness/dsh"
	"github.com/contextd/contextd/internal/harness/gemini"
	"github.com/contextd/contextd/internal/harness/kimi"
	"github.com/contextd/contextd/internal/harness/opencode"
	"github.com/contextd/contextd/internal/harness/opencode2"
	"github.com/contextd/contextd/internal/harness/openhands"
	"github.com/contextd/contextd/internal/harness/pi"
	"github.com/contextd/contextd/internal/harness/qwen"
	"github.com/contextd/contextd/internal/harness/transcript"
	"github.com/contextd/contextd/internal/harness/vscode"
	eventlog "github.com/contextd/contextd/internal/log"
)

// registry lists the harnesses. Detect asks them in this order: those with the most distinctive formats come
// first.
var registry = []transcript.Harness{
	claude.Harness,
	codex.Harness,
	opencode2.Harness,
	opencode.Harness,
	pi.Harness,
	gemini.Harness,
	qwen.Harness,
	kimi.Harness,
	antigravity.Harness,
	dsh.Harness,
	copilot.Harness,
	openhands.Harness,
	aider.Harness,
	cursor.Harness,
	vscode.Harness,
	atif.Harness,
	chat.Harness,
}

// Names lists the names of the harnesses, which Read takes and Transcript.Harness has.
func Names() []string { return namesOf(func(transcript.Harness) bool { return true }) }

// Writers lists the harnesses that Write supports.
func Writers() []string {
	return namesOf(func(h transcript.Harness) bool { return h.Write != nil })
}

func namesOf(want func(transcript.Harness) bool) (names []string) {
	for _, h := range registry {
		if want(h) {
			names = append(names, h.Name)
		}
	}
	return names
}

// CheckWriter returns a *FormatError if there is no writer for a harness, by one of its
// names.
func CheckWriter(name string) error {
	_, err := writerOf(name)
	return err
}

// CheckReader returns a *FormatError if there is no reader for a harness, by one of its
// names.
func CheckReader(name string) error {
	_, err := readerOf(name)
	return err
}

func readerOf(name string) (transcript.Harness, error) {
	for _, h := range registry {
		if h.Named(name) {
			return h, nil
		}
	}
	return transcript.Harness{}, noneFor("reader", name, Names())
}

func writerOf(name string) (transcript.Harness, error) {
	h, err := readerOf(name)
	if err != nil || h.Write == nil {
		return h, noneFor("writer", name, Writers())
	}
	return h, nil
}

func noneFor(what, name string, those []string) error {
	return &FormatError{Reason: fmt.Sprintf("no %s for %q; there are %s", what, name, strings.Join(those, ", "))}
}

// Detect recognises a format from the beginning of a file. The prefix may end anywhere; the longer it is, the more
// certain the answer.
func Detect(prefix []byte) (string, bool) {
	probe := transcript.NewProbe(bytes.TrimPrefix(prefix, bom))
	for _, h := range registry {
		if h.Detect(probe) {
			return h.Name, true
		}
	}
	return "", false
}

// archives maps the magic bytes of packed files to their descriptions in errors.
var archives = map[string]string{"PK\x03\x04": "a zip archive", "\x28\xb5\x2f\xfd": "compressed by zstd", "BZh": "compressed by bzip2", "\xfd7zXZ": "compressed by xz"}

// unknown returns the reason why a file with this prefix is not read.
func unknown(prefix []byte) string {
	for magic, what := range archives {
		if bytes.HasPrefix(prefix, []byte(magic)) {
			return "this is " + what + ": unpack it, and import what is in it"
		}
	}
	if utf16(prefix) {
		return "this is text in UTF-16, as PowerShell writes it: convert it to UTF-8"
	}
	probe := transcript.NewProbe(bytes.TrimPrefix(prefix, bom))
	for _, h := range registry {
		if h.Instead == nil {
			continue
		}
		if reason := h.Instead(probe); reason != "" {
			return reason
		}
	}
	if probe.Cut && len(prefix) == detectBytes {
		return fmt.Sprintf("the format is not recognised by the first %d KiB, which end within a text: name the harness that wrote it, of %s", detectBytes>>10, strings.Join(Names(), ", "))
	}
	if probe.Wrong != nil && probe.Line == "" {
		return fmt.Sprintf("the format is not recognised, as this is not JSON: %v", probe.Wrong)
	}
	return "the format is none of " + strings.Join(Names(), ", ") +
		`; sessions of other programs are read as messages with "role" and "content", in a list or one a line`
}

// utf16 recognises JSON in UTF-16, by its byte order mark or its first character.
func utf16(prefix []byte) bool {
	for _, begin := range []string{"\xff\xfe", "\xfe\xff", "[\x00", "{\x00", "\x00[", "\x00{"} {
		if bytes.HasPrefix(prefix, []byte(begin)) {
			return true
		}
	}
	return false
}

// DatabaseOf recognises a database by its magic bytes; nil if the file is no database. The caller reads it through
// Database.Open.
func DatabaseOf(file io.ReaderAt) *transcript.Database {
	for _, h := range registry {
		if h.Database == nil {
			continue
		}
		magic := make([]byte, len(h.Database.Magic))
		if _, err := file.ReadAt(magic, 0); err == nil && string(magic) == h.Database.Magic {
			return h.Database
		}
	}
	return nil
}

// FolderOf recognises a folder whose files together may be one transcript, by the folder's name and the files' names.
// It returns the harness that wrote it, and the files in the order in which they must be read, each as one line of
// the transcript.
func FolderOf(name string, files []string) (harness string, in []string) {
	for _, h := range registry {
		if h.Folder == nil {
			continue
		}
		if in := h.Folder(name, files); len(in) > 0 {
			return h.Name, in
		}
	}
	return "", nil
}

// BoundaryOf returns what the harness that wrote a compaction shows the model after it: Blocks instead of the dropped
// messages, in addition to the kept events and those after the compaction.
func BoundaryOf(c *eventlog.Compaction) Boundary {
	for _, h := range registry {
		if h.Boundary == nil {
			continue
		}
		if b, ok := h.Boundary(c); ok {
			return b
		}
	}
	if c.Summary == "" {
		return Boundary{}
	}
	return Boundary{Blocks: []eventlog.Block{eventlog.Text{Text: c.Summary}}}
}

// Seen reports whether the harness that wrote a message still shows it to a model.
func Seen(e eventlog.Event) bool {
	for i := range registry {
		if label := registry[i].LabelUnseen; label != "" && e.Labels[label] != "" {
			return false
		}
	}
	return true
}

// Sent returns an event as its harness sends it to the model, with the words that the harness puts around a message.
func Sent(e eventlog.Event) eventlog.Event {
	m, ok := e.Body.(*eventlog.Message)
	for i := range registry {
		if !ok || registry[i].Sent == nil {
			continue
		}
		if framed, has := registry[i].Sent(e, m); has {
			return framed
		}
	}
	return e
}

// Left returns the messages, by id, of abandoned branches: their harness went on without them and no longer shows
// them to a model.
func Left(events []eventlog.Event) map[string]bool {
	for _, h := range registry {
		if h.Branches == nil {
			continue
		}
		if left := h.Branches.Left(events); left != nil {
			return left
		}
	}
	return nil
}

// Follows reports whether an event may change which earlier messages are shown: it may change the result of
// Left, or it is a message that repeats what a boundary shows.
func Follows(e eventlog.Event) bool {
	for i := range registry {
		if b := registry[i].Branches; b != nil && b.Follows(e) {
			return true
		}
	}
	return e.Labels[labelSummary] == "true"
}

// SubagentOf returns the harness's id of the parent session, if s is a subagent's transcript in a file of its own. It
// is "" if s is no such transcript, or does not name its parent.
func SubagentOf(s Session) string {
	if subagents := subagentsOf(s); subagents == nil || s.Suffix != "" {
		return ""
	}
	return s.Labels[transcript.LabelSessionID]
}

// subagentsOf returns the subagent rules of the harness that wrote s, if s is a subagent's session; otherwise
// nil.
func subagentsOf(s Session) *transcript.Subagents {
	for _, h := range registry {
		if h.Subagents != nil && h.Subagents.Is(s) {
			return h.Subagents
		}
	}
	return nil
}

// BeganBy reports whether e, an event of the parent session that SubagentOf names, has the call that began the
// subagent. That is the call whose prompt is the subagent's first message.
func BeganBy(subagent Session, e eventlog.Event) (callID string, ok bool) {
	m, isMessage := e.Body.(*eventlog.Message)
	prompt, subagents := firstText(subagent), subagentsOf(subagent)
	if !isMessage || prompt == "" || subagents == nil {
		return "", false
	}
	for _, b := range m.Blocks {
		if c, isCall := b.(eventlog.ToolCall); isCall && subagents.Prompt(c) == prompt {
			return c.CallID, true
		}
	}
	return "", false
}

// firstText returns the text of a session's first message; "" if that is no user's text.
func firstText(s Session) string {
	for _, e := range s.Events {
		m, ok := e.Body.(*eventlog.Message)
		if !ok {
			continue
		}
		if text, ok := m.Blocks[0].(eventlog.Text); ok && m.Role == eventlog.RoleUser {
			return text.Text
		}
		return ""
	}
	return ""
}
