// Package harness reads the transcripts of agent harnesses as sessions of the
// event log. Each format has a folder with its reader; docs/harness says how each
// is mapped and what is not kept.
package harness

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/contextd/contextd/internal/harness/chat"
	"github.com/contextd/contextd/internal/harness/claude"
	"github.com/contextd/contextd/internal/harness/codex"
	"github.com/contextd/contextd/internal/harness/copilot"
	"github.com/contextd/contextd/internal/harness/cursor"
	"github.com/contextd/contextd/internal/harness/cursor/sqlite"
	"github.com/contextd/contextd/internal/harness/gemini"
	"github.com/contextd/contextd/internal/harness/opencode"
	"github.com/contextd/contextd/internal/harness/openhands"
	"github.com/contextd/contextd/internal/harness/pi"
	"github.com/contextd/contextd/internal/harness/transcript"
)

// What a reader returns.
type (
	// Transcript is what was read from one file.
	Transcript = transcript.Transcript
	// Session is one conversation of a transcript.
	Session = transcript.Session
	// Warning is something in the file that could not be read as it stood.
	Warning = transcript.Warning
	// FormatError says that the input is in no format, or not in the one named.
	FormatError = transcript.FormatError
	// LimitError says that the input is more than is read.
	LimitError = transcript.LimitError
	// Memory is what transcripts that are being read may take together.
	Memory = transcript.Memory
	// Account is what one of them takes.
	Account = transcript.Account
	// WriteOptions say what a transcript to be written does not.
	WriteOptions = transcript.WriteOptions
	// WriteReport says what became of a transcript that was written.
	WriteReport = transcript.WriteReport
)

// NewMemory has so many bytes.
func NewMemory(limit uint64) *Memory { return transcript.NewMemory(limit) }

// format is one harness whose transcripts can be read.
type format struct {
	name    string
	aliases []string
	detect  func(transcript.Probe) bool
	read    func(io.Reader) (transcript.Transcript, error)
	// write is nil where the harness does not keep enough on disk to resume from.
	write transcript.Writer
}

// formats are asked in this order: the ones with the most telling marks first.
var formats = []format{
	{claude.Name, []string{"claude-code"}, claude.Detect, claude.Read, claude.Write},
	{codex.Name, []string{"codex-rollout"}, codex.Detect, codex.Read, codex.Write},
	{opencode.Name, nil, opencode.Detect, opencode.Read, opencode.Write},
	{pi.Name, nil, pi.Detect, pi.Read, pi.Write},
	{gemini.Name, []string{"gemini-cli"}, gemini.Detect, gemini.Read, nil},
	{copilot.Name, []string{"copilot-cli"}, copilot.Detect, copilot.Read, nil},
	{openhands.Name, nil, openhands.Detect, openhands.Read, nil},
	{cursor.Name, []string{"cursor-agent"}, cursor.Detect, cursor.Read, nil},
	{chat.Name, []string{"openai", "anthropic", "tau-bench", "tau2-bench", "mini-swe-agent", "swe-agent"}, chat.Detect, chat.Read, nil},
}

// detectBytes is how much of a file is looked at to recognise its format.
const detectBytes = 1 << 20

// Names lists the harnesses by the names that Read takes and Transcript.Harness
// holds.
func Names() []string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = f.name
	}
	return names
}

// Detect recognises a format from the beginning of a file; the prefix may end
// anywhere, and the more of the file it holds the surer the answer.
func Detect(prefix []byte) (string, bool) {
	probe := transcript.NewProbe(bytes.TrimPrefix(prefix, bom))
	for _, f := range formats {
		if f.detect(probe) {
			return f.name, true
		}
	}
	return "", false
}

// DatabaseMagic begins a file that is read through OpenDatabase.
const DatabaseMagic = sqlite.Magic

// OpenDatabase gives what Read takes in the place of a database of Cursor's, which has so
// many bytes and the write-ahead log beside it, or nil. Nothing that stands in it is run.
// Its *FormatError says that it is none; warn is given damage that ends it.
func OpenDatabase(ctx context.Context, in io.ReaderAt, size int64, log io.ReaderAt, warn func(string)) io.ReadCloser {
	return cursor.OpenDatabase(ctx, in, size, log, warn)
}

// readers are used again: none of a transcript's bytes are theirs.
var readers sync.Pool

var bom = []byte("\xEF\xBB\xBF")

// Read reads a whole transcript. The harness is one of Names, or another name that
// its users know it by, or empty to recognise the format. The same bytes give the
// same transcript, and a file that grew gives the same events with more behind
// them.
//
// Problems inside a file are warnings. The error is a *FormatError if the input is
// not in the format, or the input's own error.
func Read(r io.Reader, harness string) (Transcript, error) {
	return ReadWithin(r, harness, nil)
}

// ReadWithin is Read within the memory of an account; nil is no limit of it. What is over
// a limit is a *LimitError.
func ReadWithin(r io.Reader, harness string, account *Account) (Transcript, error) {
	in, ok := readers.Get().(*bufio.Reader)
	if !ok {
		in = bufio.NewReaderSize(nil, detectBytes)
	}
	in.Reset(r)
	defer func() {
		in.Reset(nil)
		readers.Put(in)
	}()
	if mark, err := in.Peek(len(bom)); err == nil && bytes.Equal(mark, bom) {
		if _, err := in.Discard(len(bom)); err != nil {
			return Transcript{}, fmt.Errorf("read transcript: %w", err)
		}
	}
	if harness == "" {
		prefix, err := in.Peek(detectBytes)
		if err != nil && !errors.Is(err, io.EOF) {
			return Transcript{}, fmt.Errorf("read transcript: %w", err)
		}
		name, ok := Detect(prefix)
		if !ok {
			return Transcript{}, &FormatError{Reason: "the format is none of " + strings.Join(Names(), ", ")}
		}
		harness = name
	}
	for _, f := range formats {
		if f.named(harness) {
			t, err := f.read(transcript.NewInput(in, account))
			if err != nil {
				return Transcript{}, err
			}
			return withPasts(t), nil
		}
	}
	return Transcript{}, &FormatError{Reason: fmt.Sprintf("no reader for %q; there are %s", harness, strings.Join(Names(), ", "))}
}

func (f format) named(name string) bool {
	if f.name == name {
		return true
	}
	for _, a := range f.aliases {
		if a == name {
			return true
		}
	}
	return false
}

// own reports whether the session was read from a file of the harness.
func (f format) own(s Session) bool { return f.named(s.Labels[transcript.LabelHarness]) }

// gathered prepares the sessions that are not the harness's own for its writer.
func (f format) gathered(t Transcript) Transcript {
	t.Sessions = slices.Clone(t.Sessions)
	for i, s := range t.Sessions {
		if !f.own(s) {
			t.Sessions[i] = transcript.Gather(s)
		}
	}
	return t
}

// Writers lists the harnesses that Write writes for.
func Writers() []string {
	var names []string
	for _, f := range formats {
		if f.write != nil {
			names = append(names, f.name)
		}
	}
	return names
}

// Write writes a transcript for a harness, by one of the names that Read takes, so
// that it can resume from the file. What the harness cannot hold is in the report's
// warnings. The error is a *FormatError if there is no writer, or w's own.
func Write(w io.Writer, t Transcript, harness string, o WriteOptions) (WriteReport, error) {
	for _, f := range formats {
		if f.named(harness) && f.write != nil {
			return f.write(w, f.gathered(withoutPasts(t, f.own)), o)
		}
	}
	return WriteReport{}, &FormatError{Reason: fmt.Sprintf("no writer for %q; there are %s", harness, strings.Join(Writers(), ", "))}
}
