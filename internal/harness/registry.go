package harness

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/contextd/contextd/internal/harness/chat"
	"github.com/contextd/contextd/internal/harness/claude"
	"github.com/contextd/contextd/internal/harness/codex"
	"github.com/contextd/contextd/internal/harness/copilot"
	"github.com/contextd/contextd/internal/harness/cursor"
	"github.com/contextd/contextd/internal/harness/gemini"
	"github.com/contextd/contextd/internal/harness/opencode"
	"github.com/contextd/contextd/internal/harness/openhands"
	"github.com/contextd/contextd/internal/harness/pi"
	"github.com/contextd/contextd/internal/harness/transcript"
)

// registry has all that is known of each harness. A file is shown to them in this order: the
// ones with the most telling marks come first.
var registry = []transcript.Harness{
	claude.Harness,
	codex.Harness,
	opencode.Harness,
	pi.Harness,
	gemini.Harness,
	copilot.Harness,
	openhands.Harness,
	cursor.Harness,
	chat.Harness,
}

// All lists the registry.
func All() []transcript.Harness { return registry }

// Names lists the harnesses by the names that Read takes and Transcript.Harness
// holds.
func Names() []string { return namesOf(func(transcript.Harness) bool { return true }) }

// Writers lists the harnesses that Write writes for.
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

// Detect recognises a format from the beginning of a file; the prefix may end
// anywhere, and the more of the file it holds the surer the answer.
func Detect(prefix []byte) (string, bool) {
	probe := transcript.NewProbe(bytes.TrimPrefix(prefix, bom))
	for _, h := range registry {
		if h.Detect(probe) {
			return h.Name, true
		}
	}
	return "", false
}

// DatabaseOf recognises a database, which is read through its Open; nil if the file is none.
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
