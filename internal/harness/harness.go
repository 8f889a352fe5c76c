// Package harness reads the transcripts of agent harnesses as sessions of the event log, and writes them. Each
// harness has a folder and an entry in the registry. docs/harness says how each is mapped and what is not kept.
package harness

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/contextd/contextd/internal/harness/transcript"
)

// The types of the results of readers and writers.
type (
	// Transcript is the content of one file.
	Transcript = transcript.Transcript
	// Session is one conversation of a transcript.
	Session = transcript.Session
	// Envelope has what an entry of a file says besides the conversation.
	Envelope = transcript.Envelope
	// Warning is something in the file that could not be read unchanged.
	Warning = transcript.Warning
	// FormatError says that the input is in no known format, or not in the one that the caller named.
	FormatError = transcript.FormatError
	// LimitError says that the input exceeds a limit of the readers.
	LimitError = transcript.LimitError
	// Memory is the budget of bytes that all reads of transcripts share.
	Memory = transcript.Memory
	// Account is one transcript's part of a Memory.
	Account = transcript.Account
	// Boundary is what a harness shows the model after a compaction.
	Boundary = transcript.Boundary
	// WriteOptions give the values that a file needs and the transcript may not have.
	WriteOptions = transcript.WriteOptions
	// WriteReport says what was written and what was lost.
	WriteReport = transcript.WriteReport
)

// NewMemory returns a budget of limit bytes.
func NewMemory(limit uint64) *Memory { return transcript.NewMemory(limit) }

// detectBytes is how many bytes of a file are read to recognise its format.
const detectBytes = 1 << 20

// readers keeps input buffers for reuse, since no transcript keeps bytes of them.
var readers sync.Pool

var bom = []byte("\xEF\xBB\xBF")

// Read reads a whole transcript. The harness is one of Names, an alias of one, or empty to recognise the format.
// Reading is deterministic, and stable under growth: a file that has grown gives the same events as before, and then
// more.
//
// Problems inside a file are warnings. The error is a *FormatError if the input is not in the format, or the
// input's own error.
func Read(r io.Reader, harness string) (Transcript, error) {
	return ReadWithin(r, harness, nil)
}

// ReadWithin is Read within the memory of an account; a nil account sets no limit. If a limit is exceeded, the error
// is a *LimitError.
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
		if !ok && err != nil && len(bytes.TrimSpace(prefix)) == 0 {
			return Transcript{}, &FormatError{Reason: "there is nothing in it"}
		}
		if !ok {
			return Transcript{}, &FormatError{Reason: unknown(prefix)}
		}
		harness = name
	}
	h, err := readerOf(harness)
	if err != nil {
		return Transcript{}, err
	}
	t, err := h.Read(transcript.NewInput(in, account))
	if err != nil {
		return Transcript{}, err
	}
	for i := range t.Sessions {
		t.Sessions[i].Events = withPast(t.Sessions[i].Events)
	}
	return t, nil
}

// Write writes a transcript as a file from which a harness, by one of the names that Read takes, can resume. The
// report's warnings say what the harness cannot store. The error is a *FormatError if there is no writer, or w's own.
func Write(w io.Writer, t Transcript, harness string, o WriteOptions) (WriteReport, error) {
	h, err := writerOf(harness)
	if err != nil {
		return WriteReport{}, err
	}
	t.Sessions = slices.Clone(t.Sessions)
	for i, s := range t.Sessions {
		own := h.Owns(s)
		if s.Events = withoutPast(s.Events, own); !own {
			s = transcript.Gather(s)
		}
		t.Sessions[i] = s
	}
	return h.Write(w, t, o)
}
