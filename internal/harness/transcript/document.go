package transcript

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// Document reads JSON values from a stream and knows the lines in which they begin. Unlike with ReadLines, a
// value may span several lines.
type Document struct {
	dec    *jsontext.Decoder
	lines  lineIndex
	mended escapes
	warn   Warn
	// damaged is the offset at which the input is no longer JSON.
	damaged int64
}

// NewDocument reads from r.
func NewDocument(r io.Reader, warn Warn) *Document {
	d := &Document{mended: escapes{in: r, line: 1}, warn: warn}
	d.lines = lineIndex{in: &d.mended, account: accountOf(r)}
	d.dec = jsontext.NewDecoder(&d.lines, lenient)
	return d
}

// StartingAt sets the number of the first line, for a value that was cut out of a file. It must be called
// before anything is read.
func (d *Document) StartingAt(line int) *Document {
	d.lines.line, d.mended.line = line, line
	return d
}

// Open reads the beginning of the next value. It returns '{' or '[' for an object or a list. Any other value it reads
// whole, and returns its kind. The error is io.EOF after the last value.
func (d *Document) Open() (byte, error) {
	t, err := d.dec.ReadToken()
	if err != nil {
		return 0, d.failed(err)
	}
	return byte(t.Kind()), nil
}

// Each calls value with the kind of each value, of which it has read as much as Open does, until value
// returns false. Damage of the input is a warning. If values are lines, only the rest of the damaged line is lost.
func (d *Document) Each(value func(kind byte) (bool, error)) error {
	lines := false // the value before began and ended in one line
	for noise := 1; ; {
		kind, err := d.Open()
		if err == io.EOF { //nolint:errorlint // Open gives it as it is after the last value
			return d.Settle(nil)
		}
		begins, more := d.Line(), true
		if err == nil {
			more, err = value(kind)
		}
		switch {
		case err == nil && !more:
			return d.Settle(nil)
		case err == nil:
			lines = d.Line() == begins
		case !lines || !d.skipLine(begins, err):
			return d.Settle(err)
		case noise > maxNoise:
			return &LimitError{What: "lines that are not JSON", Limit: maxNoise, Actual: uint64(noise)}
		default:
			noise++
		}
	}
}

// skipLine goes on at the line after a damaged value that is a line, if an object begins there. A value without its end
// is damaged where the next one begins.
func (d *Document) skipLine(line int, err error) bool {
	if !malformed(err) {
		return false
	}
	l, at := &d.lines, 0
	if l.line == line {
		at = l.next()
	}
	if l.line > line+1 || !bytes.HasPrefix(l.ahead[at:], []byte("{")) {
		return false
	}
	l.at(l.off + int64(at))
	l.in, l.ahead, l.off = io.MultiReader(bytes.NewReader(l.ahead), l.in), nil, 0
	d.dec.Reset(l, lenient)
	d.damaged = 0
	d.warn(line, "not JSON, the rest of the line was not read: %v", err)
	return true
}

// More reports whether the open object or list has another member. It is also false if the input is truncated or
// damaged; then Close returns the error.
func (d *Document) More() bool {
	k := d.dec.PeekKind()
	return k != '}' && k != ']' && k != jsontext.KindInvalid
}

// Kind returns the kind of the next value; it reads nothing.
func (d *Document) Kind() byte { return byte(d.dec.PeekKind()) }

// Key reads the name of an object's next member.
func (d *Document) Key() (string, error) {
	t, err := d.dec.ReadToken()
	if err != nil {
		return "", d.failed(err)
	}
	return t.String(), nil
}

// Value reads a whole value and the line in which it begins. The caller owns the bytes, which are valid
// UTF-8.
func (d *Document) Value() (jsontext.Value, int, error) {
	value, err := d.dec.ReadValue()
	if err != nil {
		return nil, d.Line(), d.failed(err)
	}
	line := d.lines.at(d.dec.InputOffset() - int64(len(value)))
	d.mended.warnBefore(d.lines.at(d.dec.InputOffset()), d.warn)
	if err = d.lines.account.record(value); err == nil {
		err = d.lines.account.Retain(recordCost + uint64(len(value)))
	}
	if err != nil {
		return nil, line, atLine(line, err)
	}
	return cleanRecord(bytes.Clone(value), line, d.warn), line, nil
}

// Close reads the end of the open object or list.
func (d *Document) Close() error {
	_, err := d.dec.ReadToken()
	return d.failed(err)
}

// Line returns the line up to which the document was read, or the one that is damaged.
func (d *Document) Line() int { return d.lines.at(max(d.dec.InputOffset(), d.damaged)) }

func (d *Document) failed(err error) error {
	if err == nil || err == io.EOF { //nolint:errorlint // the decoder wraps it where more was expected
		return err
	}
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		d.damaged = syntax.ByteOffset
	}
	return fmt.Errorf("line %d: %w", d.Line(), err)
}

// Settle handles the error with which reading ended. Damage of the input, such as truncation, becomes a
// warning and nil; a failure of the underlying reader is returned.
func (d *Document) Settle(err error) error {
	switch {
	case err == nil:
		d.mended.warnBefore(d.Line()+1, d.warn)
		return nil
	case d.lines.err != nil:
		return fmt.Errorf("read transcript: %w", d.lines.err)
	case malformed(err), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		d.mended.warnBefore(d.Line(), d.warn)
		d.warn(d.Line(), "the rest is cut off or not JSON and was not read: %v", err)
		return nil
	}
	return err
}

// lineIndex converts offsets to line numbers. It keeps the bytes after the last requested offset, of which there may
// be no more than a record may have.
type lineIndex struct {
	in io.Reader
	// ahead has the bytes that were read after the last requested offset.
	ahead   []byte
	off     int64 // the offset of ahead
	line    int   // the line at off; 0 means 1
	account *Account
	err     error // of the source, other than its end
}

func (l *lineIndex) Read(p []byte) (int, error) {
	if l.err != nil {
		return 0, l.err
	}
	n, err := l.in.Read(p)
	l.ahead = append(l.ahead, p[:n]...)
	if limit := l.account.read(len(l.ahead), 0); limit != nil {
		err = atLine(max(l.line, 1), limit)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		l.err = err
	}
	return n, err
}

// at returns the line of an offset. Offsets must not decrease; for an earlier one it returns the line of the
// last.
func (l *lineIndex) at(off int64) int {
	n := min(max(off-l.off, 0), int64(len(l.ahead)))
	l.line = max(l.line, 1) + bytes.Count(l.ahead[:n], []byte("\n"))
	l.ahead, l.off = l.ahead[n:], l.off+n
	return l.line
}

// next returns where in ahead the next line begins, or its length if there is none.
func (l *lineIndex) next() int {
	var more [4096]byte
	for err := error(nil); ; _, err = l.Read(more[:]) {
		if at := bytes.IndexByte(l.ahead, '\n') + 1; at > 0 && at < len(l.ahead) {
			return at
		}
		if err != nil {
			return len(l.ahead)
		}
	}
}

// ReadObject reads a file that is one JSON object. It calls element with each element of the member called
// list as it is read, and field with every other member. A truncated or damaged file is read up to the
// damage, with a warning. The callbacks own the bytes that they get.
func ReadObject(r io.Reader, warn Warn, list string,
	field func(name string, value jsontext.Value, line int), element func(value jsontext.Value, line int),
) error {
	doc := NewDocument(r, warn)
	return doc.Settle(doc.Object(list, field, element))
}

// Object reads one object, as ReadObject does.
func (d *Document) Object(list string, field func(string, jsontext.Value, int), element func(jsontext.Value, int)) error {
	kind, err := d.Open()
	if err != nil {
		return err
	}
	if kind != '{' {
		d.warn(d.Line(), "the file does not hold an object")
		return nil
	}
	for d.More() {
		name, err := d.Key()
		if err != nil {
			return err
		}
		if name == list {
			_, err = d.List(element)
		} else {
			var value jsontext.Value
			var line int
			if value, line, err = d.Value(); err == nil {
				field(name, value, line)
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return d.Close()
}

// List reads a list and calls element with each element. Any other value is read and dropped with a warning,
// and ok is false; null gives no warning.
func (d *Document) List(element func(value jsontext.Value, line int)) (ok bool, err error) {
	if kind := d.dec.PeekKind(); kind != '[' {
		value, line, err := d.Value()
		if err == nil && string(value) != "null" {
			d.warn(line, "a list was expected and something else found, which was not read")
		}
		return false, err
	}
	if _, err := d.Open(); err != nil {
		return false, err
	}
	return true, d.Rest(element)
}

// Rest calls element with each further element of the open list, and reads its end.
func (d *Document) Rest(element func(value jsontext.Value, line int)) error {
	for d.More() {
		value, line, err := d.Value()
		if err != nil {
			return err
		}
		element(value, line)
	}
	return d.Close()
}
