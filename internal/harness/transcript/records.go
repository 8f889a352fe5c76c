package transcript

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Record is one JSON value of a file. Its bytes are the reader's to read until
// the next record.
type Record struct {
	Line int // where it begins
	// Index counts the records of the line from 0.
	Index int
	JSON  []byte
}

// ReadLines calls record for every JSON value of a JSON Lines file, in order. A
// line may hold several values; each is reported. What is not JSON is warned of
// and skipped, a last line that was cut off included. The bytes given to record
// are valid UTF-8 and valid JSON.
func ReadLines(r io.Reader, warn func(line int, format string, args ...any), record func(Record)) error {
	in := bufio.NewReaderSize(r, 256<<10)
	var long []byte
	for line := 1; ; line++ {
		chunk, err := in.ReadSlice('\n')
		for long = long[:0]; errors.Is(err, bufio.ErrBufferFull); chunk, err = in.ReadSlice('\n') {
			long = append(long, chunk...)
		}
		if len(long) > 0 {
			long = append(long, chunk...)
			chunk = long
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read line %d: %w", line, err)
		}
		if text := bytes.TrimSpace(chunk); len(text) > 0 {
			readLine(text, line, err != nil, warn, record)
		}
		if err != nil {
			return nil
		}
	}
}

func readLine(text []byte, line int, last bool, warn func(int, string, ...any), record func(Record)) {
	text = cleanRecord(text, line, warn)
	if json.Valid(text) {
		record(Record{Line: line, JSON: text})
		return
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	for index := 0; ; index++ {
		start := dec.InputOffset()
		var value json.RawMessage
		err := dec.Decode(&value)
		switch {
		case err == nil:
			record(Record{Line: line, Index: index, JSON: value})
			continue
		case errors.Is(err, io.EOF):
			if index > 1 {
				warn(line, "the line holds %d records; all were read", index)
			}
		case errors.Is(err, io.ErrUnexpectedEOF) && last:
			warn(line, "the last line is cut off: %d bytes were not read", int64(len(text))-start)
		default:
			warn(line, "not JSON, %d bytes were not read: %v", int64(len(text))-start, err)
		}
		return
	}
}

// PositionID names a record that has no id of its own.
func PositionID(r Record) string {
	if r.Index > 0 {
		return fmt.Sprintf("line-%d.%d", r.Line, r.Index)
	}
	return fmt.Sprintf("line-%d", r.Line)
}
