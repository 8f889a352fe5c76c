package transcript

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Document reads JSON values from a stream and knows their lines. Unlike
// ReadLines it does not mind where a value's lines break.
type Document struct {
	dec   *json.Decoder
	lines lineIndex
	warn  func(int, string, ...any)
}

// NewDocument reads from r.
func NewDocument(r io.Reader, warn func(line int, format string, args ...any)) *Document {
	d := &Document{lines: lineIndex{in: r}, warn: warn}
	d.dec = json.NewDecoder(&d.lines)
	d.dec.UseNumber()
	return d
}

// StartingAt makes the document's first line the given one, for a value that was
// cut out of a file.
func (d *Document) StartingAt(line int) *Document {
	d.lines.before = line - 1
	return d
}

// Open reads the beginning of the next value and returns '{' or '[' if it is an
// object or a list, or else 0 and the value; io.EOF behind the last value.
func (d *Document) Open() (json.Delim, json.Token, error) {
	t, err := d.dec.Token()
	if err != nil {
		return 0, nil, d.failed(err)
	}
	if delim, ok := t.(json.Delim); ok {
		return delim, nil, nil
	}
	return 0, t, nil
}

// More reports whether the open object or list has another member.
func (d *Document) More() bool { return d.dec.More() }

// Key reads the name of an object's next member.
func (d *Document) Key() (string, error) {
	t, err := d.dec.Token()
	if err != nil {
		return "", d.failed(err)
	}
	key, _ := t.(string)
	return key, nil
}

// Value reads a whole value as it stands and the line it begins in. The bytes are
// the caller's, valid JSON and valid UTF-8.
func (d *Document) Value() (json.RawMessage, int, error) {
	var raw json.RawMessage
	if err := d.dec.Decode(&raw); err != nil {
		return nil, d.Line(), d.failed(err)
	}
	line := d.lines.at(d.dec.InputOffset() - int64(len(raw)))
	return cleanRecord(raw, line, d.warn), line, nil
}

// Close reads the end of the open object or list.
func (d *Document) Close() error {
	_, err := d.dec.Token()
	return d.failed(err)
}

// Line is the line that has been read up to.
func (d *Document) Line() int { return d.lines.at(d.dec.InputOffset()) }

func (d *Document) failed(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return fmt.Errorf("line %d: %w", d.Line(), err)
}

// lineIndex notes where lines begin as they pass.
type lineIndex struct {
	in   io.Reader
	off  int64
	ends []int64 // offsets of newlines
	// before is how many lines came before the first.
	before int
}

func (l *lineIndex) Read(p []byte) (int, error) {
	n, err := l.in.Read(p)
	for i, c := range p[:n] {
		if c == '\n' {
			l.ends = append(l.ends, l.off+int64(i))
		}
	}
	l.off += int64(n)
	return n, err //nolint:wrapcheck // a reader passes its source's error on
}

func (l *lineIndex) at(off int64) int {
	i, _ := slices.BinarySearch(l.ends, off)
	return l.before + i + 1
}
