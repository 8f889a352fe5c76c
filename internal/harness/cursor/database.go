package cursor

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"

	"github.com/contextd/contextd/internal/harness/cursor/sqlite"
	"github.com/contextd/contextd/internal/harness/transcript"
)

// database is a database of the editor as Read reads it: the rows of its chats as JSON,
// one a line. Nothing that is in the database is run.
type database struct {
	line bytes.Buffer
	next func() (sqlite.Row, error, bool)
	stop func()
	warn func(string)
	// begun is set once a row was read.
	begun bool
	err   error // the last one, which stays
}

// databaseTable is where the editor keeps its chats.
const databaseTable = "cursorDiskKV"

// openDatabase reads a database of so many bytes, and the write-ahead log beside it
// unless it is nil. warn is given damage after the first row, which ends the rows.
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

// Close ends the reading.
func (d *database) Close() error {
	d.stop()
	return nil
}

// Read gives the next rows. A file that is no database of the editor is a
// *transcript.FormatError.
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

// row goes on to the next row.
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
	case errors.As(err, &damage), errors.As(err, &refused):
		return &transcript.FormatError{Harness: Name, Reason: err.Error()}
	case err != nil:
		return err
	}
	d.begun = true
	d.write(row)
	return nil
}

// write writes a row as readRows takes it.
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
