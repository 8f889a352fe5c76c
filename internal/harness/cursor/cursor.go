// Package cursor reads the chats of Cursor: from its database, from an export of
// the database's rows as JSON, and from the transcripts that its agent writes line
// by line. docs/harness/cursor.md describes the formats and the mapping. There is
// no writer: what Cursor resumes from stands on its servers.
package cursor

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/contextd/contextd/internal/harness/transcript"
)

// Name of the harness.
const Name = "cursor"

const (
	composerPrefix = "composerData:"
	bubblePrefix   = "bubbleId:"
)

// families are the beginnings of the keys of the database's table.
var families = []string{
	composerPrefix, bubblePrefix, "messageRequestContext:", "checkpointId:", "codeBlockDiff:", "agentKv:", "inlineDiffs",
	"composer.content.", "ofsContent:",
}

// Detect recognises a database, rows of it, and a transcript of the agent.
func Detect(p transcript.Probe) bool {
	if p.SQLite {
		return true
	}
	for _, r := range p.Records {
		for _, path := range []string{"key", "[].key"} {
			for _, f := range families {
				if strings.HasPrefix(r[path], f) {
					return true
				}
			}
		}
		for path := range r {
			if strings.HasPrefix(path, composerPrefix) || strings.HasPrefix(path, bubblePrefix) {
				return true
			}
		}
	}
	return p.Has("role", "message.content[].type") && !p.Has("type", "uuid") && !p.Has("type", "message.role") && !p.Has("sessionId")
}

// magic begins a database.
var magic = []byte("SQLite format 3\x00")

// Read reads all chats of a file.
func Read(in io.Reader) (transcript.Transcript, error) {
	buffered := bufio.NewReaderSize(in, 64<<10)
	begin, err := buffered.Peek(len(magic))
	if err != nil && !errors.Is(err, io.EOF) {
		return transcript.Transcript{}, &readError{err}
	}
	out := transcript.NewBuilder(Name)
	t := newTable(out)
	switch {
	case bytes.Equal(begin, magic):
		err = t.readDatabase(buffered)
	default:
		err = t.readRows(buffered)
	}
	if err != nil {
		return transcript.Transcript{}, err
	}
	t.chats()
	return out.Finish()
}

// readError is a failure to read the input.
type readError struct{ cause error }

func (e *readError) Error() string { return "read transcript: " + e.cause.Error() }
func (e *readError) Unwrap() error { return e.cause }
