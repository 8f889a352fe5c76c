package transcript

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// Record is one JSON value of a file. Its bytes are the reader's to read until
// the next record.
type Record struct {
	Line int // where it begins
	// Index counts the records of the line from 0.
	Index int
	JSON  []byte
	// sound records are known to be JSON and UTF-8 throughout.
	sound bool
}

// PositionID names a record that has no id of its own.
func PositionID(r Record) string {
	if r.Index > 0 {
		return fmt.Sprintf("line-%d.%d", r.Line, r.Index)
	}
	return fmt.Sprintf("line-%d", r.Line)
}

// Warn takes a warning about a line.
type Warn func(line int, format string, args ...any)

// ReadLines calls record for every JSON value of a JSON Lines file, in order. A
// line may hold several values; each is reported. What is not JSON is warned of
// and skipped, a last line that was cut off included. The bytes given to record
// are valid UTF-8.
//
// record decodes the bytes first of all and returns the error of that, before it
// does anything else: so ReadLines learns that a line is not one JSON value
// without reading it twice.
func ReadLines(r io.Reader, warn Warn, record func(Record) error) error {
	in, account := Ahead(r, 64<<10), accountOf(r)
	var long []byte
	noise := 0
	for line := 1; ; line++ {
		chunk, err := in.ReadSlice('\n')
		for long = long[:0]; errors.Is(err, bufio.ErrBufferFull); chunk, err = in.ReadSlice('\n') {
			long = append(long, chunk...)
			if err := account.read(len(long), 0); err != nil {
				return atLine(line, err)
			}
		}
		if len(long) > 0 {
			long = append(long, chunk...)
			chunk = long
		}
		last := errors.Is(err, io.EOF)
		if err != nil && !last {
			return fmt.Errorf("read line %d: %w", line, err)
		}
		if text := bytes.TrimSpace(chunk); len(text) > 0 {
			sound, err := readLine(text, line, last, account, warn, record)
			if err == nil && !sound {
				if noise++; noise > MaxNoise {
					err = &LimitError{What: "lines that are not JSON", Limit: MaxNoise, Actual: uint64(noise)}
				}
			}
			if err != nil {
				return atLine(line, err)
			}
		}
		if last {
			return nil
		}
	}
}

// readLine reads the records of a line, and reports whether it holds nothing else.
func readLine(text []byte, line int, last bool, account *Account, warn Warn, record func(Record) error) (bool, error) {
	sound := jsontext.Value(text).IsValid(strict)
	if !sound {
		text = cleanRecord(text, line, warn)
	}
	if err := account.record(text); err != nil {
		return false, err
	}
	err := record(Record{Line: line, JSON: text, sound: sound})
	if err == nil || !Malformed(err) {
		if err != nil {
			warn(line, "has an unexpected shape and was not read: %v", err)
		}
		return true, account.Retain(recordCost + uint64(len(text)))
	}
	dec := jsontext.NewDecoder(bytes.NewReader(text), lenient)
	for index := 0; ; index++ {
		start := dec.InputOffset()
		value, err := dec.ReadValue()
		switch {
		case err == nil:
			if err := record(Record{Line: line, Index: index, JSON: value}); err != nil {
				warn(line, "record %d has an unexpected shape and was not read: %v", index+1, err)
			}
			if err := account.Retain(recordCost + uint64(len(value))); err != nil {
				return false, err
			}
			continue
		case errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
			warn(line, "the line holds %d records; all were read", index)
			return true, nil
		case errors.Is(err, io.ErrUnexpectedEOF) && last:
			warn(line, "the last line is cut off: %d bytes were not read", int64(len(text))-start)
		default:
			warn(line, "not JSON, %d bytes were not read: %v", int64(len(text))-start, err)
		}
		return false, nil
	}
}
