package transcript

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// Record is one JSON value of a file, valid and in UTF-8. Its bytes are valid only until the next record.
type Record struct {
	Line int // where it begins
	// Index counts the records of the line from 0.
	Index int
	JSON  []byte
}

// PositionID makes an id from the position of a record that has none of its own.
func PositionID(r Record) string {
	if r.Index > 0 {
		return fmt.Sprintf("line-%d.%d", r.Line, r.Index)
	}
	return fmt.Sprintf("line-%d", r.Line)
}

// Warn adds a warning about a line.
type Warn func(line int, format string, args ...any)

// ReadLines calls record for every JSON value of a JSON Lines file, in order. A line may have several values.
// Anything else, such as a truncated last line, gives a warning and is skipped.
func ReadLines(r io.Reader, warn Warn, record func(Record)) error {
	account, noise := accountOf(r), 0
	return eachLine(r, func(line int, chunk []byte, last bool) error {
		text := bytes.TrimSpace(chunk)
		if len(text) == 0 {
			return nil
		}
		sound, err := readLine(text, line, last, account, warn, record)
		if err == nil && !sound {
			if noise++; noise > maxNoise {
				err = &LimitError{What: "lines that are not JSON", Limit: maxNoise, Actual: uint64(noise)}
			}
		}
		return err
	})
}

const blanks = " \t\r\n"

// ReadRecords is ReadLines for a file that may also be a list of the records, or an object whose first member lists them
// under the name. There a record may span several lines.
func ReadRecords(r io.Reader, name string, warn Warn, record func(Record)) error {
	in := Ahead(r, 4096)
	start, err := in.Peek(4096)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read transcript: %w", err)
	}
	last := Record{}
	element := func(value jsontext.Value, line int) {
		index := 0
		if line == last.Line {
			index = last.Index + 1
		}
		last = Record{Line: line, Index: index, JSON: value}
		record(last)
	}
	start = bytes.TrimLeft(start, blanks)
	if object, ok := bytes.CutPrefix(start, []byte("{")); ok && bytes.HasPrefix(bytes.TrimLeft(object, blanks), []byte(Quote(name)+":")) {
		return ReadObject(in, warn, name, func(string, jsontext.Value, int) {}, element)
	}
	if list, ok := bytes.CutPrefix(start, []byte("[")); !ok || !bytes.HasPrefix(bytes.TrimLeft(list, blanks), []byte("{")) {
		return ReadLines(in, warn, record)
	}
	doc := NewDocument(in, warn)
	if _, err = doc.Open(); err == nil {
		err = doc.Rest(element)
	}
	for err == nil { // records next to the list
		var value jsontext.Value
		var line int
		if value, line, err = doc.Value(); err == nil {
			element(value, line)
		}
	}
	if err == io.EOF { //nolint:errorlint // Value gives it as it is after the last value
		err = nil
	}
	return doc.Settle(err)
}

// ReadText calls line for every line of a text, without its newline. line returns the size in bytes, so far, of the
// entry to which the line belongs. This size must not exceed the limit of a record.
func ReadText(r io.Reader, line func(number int, text string) int) error {
	account := accountOf(r)
	return eachLine(r, func(number int, chunk []byte, _ bool) error {
		return account.read(line(number, string(bytes.TrimSuffix(chunk, []byte("\n")))), 0)
	})
}

// eachLine calls line for every line, with its newline, until an error. The bytes are valid only until the next line.
func eachLine(r io.Reader, line func(number int, chunk []byte, last bool) error) error {
	in, account := Ahead(r, 64<<10), accountOf(r)
	var long []byte
	for number := 1; ; number++ {
		chunk, err := in.ReadSlice('\n')
		for long = long[:0]; errors.Is(err, bufio.ErrBufferFull); chunk, err = in.ReadSlice('\n') {
			long = append(long, chunk...)
			if err := account.read(len(long), 0); err != nil {
				return atLine(number, err)
			}
		}
		if len(long) > 0 {
			long = append(long, chunk...)
			chunk = long
		}
		last := errors.Is(err, io.EOF)
		if err != nil && !last {
			return fmt.Errorf("read line %d: %w", number, err)
		}
		if err := line(number, chunk, last); err != nil {
			return atLine(number, err)
		}
		if last {
			return nil
		}
	}
}

// readLine reads the records of a line, and reports whether all of it was valid JSON.
func readLine(text []byte, line int, last bool, account *Account, warn Warn, record func(Record)) (bool, error) {
	text = cleanRecord(text, line, warn)
	if err := account.record(text); err != nil {
		return false, err
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(text), lenient)
	for index := 0; ; index++ {
		start := dec.InputOffset()
		value, err := dec.ReadValue()
		switch {
		case err == nil:
			record(Record{Line: line, Index: index, JSON: before(dec, text, len(value))})
			if err := account.Retain(recordCost + uint64(len(value))); err != nil {
				return false, err
			}
			continue
		case errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
			if index > 1 {
				warn(line, "the line holds %d records; all were read", index)
			}
			return true, nil
		case errors.Is(err, io.ErrUnexpectedEOF) && last:
			warn(line, "the last line is cut off: %d bytes were not read", int64(len(text))-start)
		default:
			warn(line, "not JSON, %d bytes were not read: %v", int64(len(text))-start, err)
		}
		return false, nil
	}
}
