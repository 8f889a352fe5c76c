// Package cursor reads the chats of Cursor: from its database, from an export of
// the database's rows as JSON, and from the transcripts that its agent writes line
// by line. docs/harness/cursor.md describes the formats and the mapping. There is
// no writer: what Cursor resumes from is on its servers.
package cursor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
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

// families are the prefixes of keys in the database's table.
var families = []string{
	composerPrefix, bubblePrefix, "messageRequestContext:", "checkpointId:", "codeBlockDiff:", "agentKv:", "inlineDiffs",
	"composer.content.", "ofsContent:",
}

// Harness is Cursor.
var Harness = transcript.Harness{
	Name: Name, Aliases: []string{"cursor-agent"}, Detect: detect, Read: read, NotKept: notKept,
	Database: &transcript.Database{Magic: sqlite.Magic, Open: openDatabase},
}

// detect recognises a database by its table, rows of it, and a transcript of the agent.
func detect(p transcript.Probe) bool {
	if bytes.Contains(p.SQLite, []byte(databaseTable)) {
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
	return p.Has("role", "message.content[].type") && !p.Has("type", "uuid") && !p.Has("message.role") && !p.Has("sessionId")
}

// read reads all chats of a JSON file. It refuses a database, whose pages must be read at random: that is
// read through openDatabase.
func read(in io.Reader) (transcript.Transcript, error) {
	buffered := transcript.Ahead(in, 64<<10)
	begin, err := buffered.Peek(len(sqlite.Magic))
	if err != nil && !errors.Is(err, io.EOF) {
		return transcript.Transcript{}, fmt.Errorf("read transcript: %w", err)
	}
	if string(begin) == sqlite.Magic {
		return transcript.Transcript{}, &transcript.FormatError{
			Harness: Name, Reason: `a database is read from its file alone: give it to "contextd import", not compressed and not as stdin`,
		}
	}
	out := transcript.NewBuilder(Name, in)
	t := newTable(out)
	err = t.readRows(buffered)
	t.chats()
	return out.Finish(err)
}

// notKept lists what the reader omits.
var notKept = []transcript.NotKept{
	{Entry: "bubble", Field: "richText", Reason: "the text once more, as the editor holds it"},
	{Entry: "bubble", Field: "toolFormerData.params", Reason: "the arguments once more, as the tool took them; read where there are no others"},
	{Entry: "bubble", Field: "toolFormerData.additionalData", Reason: "how the user was shown the call, but for a status that says that it failed"},
	{Entry: "bubble", Field: "images", Reason: "pictures are named by files of the editor, which are not part of the database"},
	{Entry: "bubble", Field: "context", Reason: "what the user attached; what of it the model was sent is not stored"},
	{Entry: "bubble", Field: "lints", Reason: "one of dozens of lists about the editor's state, mostly empty"},
	{Entry: "composer", Field: "codeBlockData", Reason: "the state of edits in the editor"},
	{Entry: "composer", Field: "originalFileStates", Reason: "whole files as they were before edits"},
	{Entry: "row", Field: "", Reason: "rows of other families: checkpoints, diffs, contexts of requests"},
}

// database gives the chats of the editor's database in the form that Read takes: rows as JSON, one a line. It
// runs nothing that the database contains.
type database struct {
	line bytes.Buffer
	next func() (sqlite.Row, error, bool)
	stop func()
	warn func(string)
	// begun is set once a row was read.
	begun bool
	err   error // the final one, which all later reads return
}

// databaseTable is the table in which the editor keeps its chats.
const databaseTable = "cursorDiskKV"

// openDatabase opens a database of size bytes, with the write-ahead log next to it, which may be nil. Damage
// after the first row ends the rows and is given to warn; damage before it is a *transcript.FormatError of
// Read.
func openDatabase(ctx context.Context, in io.ReaderAt, size int64, log io.ReaderAt, warn func(string)) io.ReadCloser {
	file, err := sqlite.Open(in, size, log)
	rows := func(yield func(sqlite.Row, error) bool) { yield(sqlite.Row{}, err) }
	if err == nil {
		rows = file.Rows(ctx, databaseTable, composerPrefix, bubblePrefix)
	}
	d := &database{warn: warn}
	d.next, d.stop = iter.Pull2(rows)
	return d
}

func (d *database) Close() error {
	d.stop()
	return nil
}

// Read returns the next rows. The error is a *transcript.FormatError if the file is not a database of the
// editor.
func (d *database) Read(p []byte) (int, error) {
	for d.line.Len() == 0 {
		if d.err == nil {
			d.err = d.row()
		}
		if d.err != nil {
			return 0, d.err
		}
	}
	return d.line.Read(p)
}

// row reads the next row.
func (d *database) row() error {
	row, err, ok := d.next()
	var damage *sqlite.DamageError
	var refused *sqlite.RefusedError
	switch {
	case !ok && !d.begun:
		return &transcript.FormatError{Harness: Name, Reason: "there are no chats in the database"}
	case !ok:
		return io.EOF
	case errors.As(err, &damage) && d.begun:
		d.warn(damage.Error() + "; it was not read to its end")
		return io.EOF
	case errors.As(err, &refused): // it may be another program's
		return &transcript.FormatError{Reason: err.Error()}
	case errors.As(err, &damage):
		return &transcript.FormatError{Harness: Name, Reason: err.Error()}
	case err != nil:
		return err
	}
	d.begun = true
	d.write(row)
	return nil
}

// write puts a row into line, in the form that readRows takes.
func (d *database) write(row sqlite.Row) {
	value := transcript.Clean(string(row.Value))
	if row.Value == nil {
		value = "null"
	} else if !transcript.Valid([]byte(value)) {
		value = transcript.Quote(value)
	}
	d.line.Reset()
	d.line.WriteString(`{"key":` + transcript.Quote(row.Key) + `,"value":` + value + "}\n")
}
