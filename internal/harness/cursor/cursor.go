// Package cursor reads the chats of Cursor: from its database, from an export of
// the database's rows as JSON, and from the transcripts that its agent writes line
// by line. docs/harness/cursor.md describes the formats and the mapping. There is
// no writer: what Cursor resumes from is on its servers.
package cursor

import (
	"errors"
	"io"
	"strings"

	"github.com/contextd/contextd/internal/harness/cursor/sqlite"
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

// Harness is Cursor.
var Harness = transcript.Harness{
	Name: Name, Aliases: []string{"cursor-agent"}, Detect: detect, Read: read, NotKept: notKept,
	Database: &transcript.Database{Magic: sqlite.Magic, Open: openDatabase},
}

// detect recognises a database, rows of it, and a transcript of the agent.
func detect(p transcript.Probe) bool {
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

// read reads all chats of a file of JSON. A database is read through openDatabase, since
// its pages are read where they are and not in the order in which they come.
func read(in io.Reader) (transcript.Transcript, error) {
	buffered := transcript.Ahead(in, 64<<10)
	begin, err := buffered.Peek(len(sqlite.Magic))
	if err != nil && !errors.Is(err, io.EOF) {
		return transcript.Transcript{}, &readError{err}
	}
	if string(begin) == sqlite.Magic {
		return transcript.Transcript{}, &transcript.FormatError{
			Harness: Name, Reason: `a database is read from its file alone: give it to "contextd import", not compressed and not as stdin`,
		}
	}
	out := transcript.NewBuilder(Name, in)
	t := newTable(out)
	if err := t.readRows(buffered); err != nil {
		return transcript.Transcript{}, err
	}
	t.chats()
	return out.Finish()
}

// readError is a failure to read the input.
type readError struct{ cause error }

func (e *readError) Error() string { return "read transcript: " + e.cause.Error() }
func (e *readError) Unwrap() error { return e.cause }
