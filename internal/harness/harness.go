// Package harness reads the transcripts of agent harnesses as sessions of the event
// log, and writes them. Each harness has a folder, and its entry in the registry;
// docs/harness says how each is mapped and what is not kept.
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

// What a reader returns.
type (
	// Transcript is what was read from one file.
	Transcript = transcript.Transcript
	// Session is one conversation of a transcript.
	Session = transcript.Session
	// Envelope is what an entry of a file says besides its conversation.
	Envelope = transcript.Envelope
	// Warning is something in the file that could not be read unchanged.
	Warning = transcript.Warning
	// FormatError says that the input is in no format, or not in the one named.
	FormatError = transcript.FormatError
	// LimitError says that the input is more than is read.
	LimitError = transcript.LimitError
	// Memory is what transcripts that are being read may take together.
	Memory = transcript.Memory
	// Account is what one of them takes.
	Account = transcript.Account
	// Boundary is how a harness goes on after a compaction.
	Boundary = transcript.Boundary
	// WriteOptions say what a transcript to be written does not.
	WriteOptions = transcript.WriteOptions
	// WriteReport says what became of a transcript that was written.
	WriteReport = transcript.WriteReport
)

// NewMemory has so many bytes.
func NewMemory(limit uint64) *Memory { return transcript.NewMemory(limit) }

// detectBytes is how much of a file is looked at to recognise its format.
const detectBytes = 1 << 20

// readers are used again: none of a transcript's bytes are theirs.
var readers sync.Pool

var bom = []byte("\xEF\xBB\xBF")

// Read reads a whole transcript. The harness is one of Names, or another name that
// its users know it by, or empty to recognise the format. The same bytes give the
// same transcript, and a file that grew gives the same events with more after
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

// Write writes a transcript for a harness, by one of the names that Read takes, so
// that it can resume from the file. What the harness cannot hold is in the report's
// warnings. The error is a *FormatError if there is no writer, or w's own.
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
