package transcript

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ReadObject reads a file that is one JSON object. Each element of the list named
// is given to element as it is read, and every other member to field. A file that
// is cut off or damaged is read up to there and warned of. The bytes given are the
// callee's.
func ReadObject(r io.Reader, warn func(line int, format string, args ...any), list string,
	field func(name string, value json.RawMessage, line int), element func(value json.RawMessage, line int),
) error {
	doc := NewDocument(r, warn)
	err := doc.object(list, field, element)
	var syntax *json.SyntaxError
	if err != nil && (errors.As(err, &syntax) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) {
		warn(doc.Line(), "the rest is cut off or not JSON and was not read: %v", err)
		return nil
	}
	return err
}

func (d *Document) object(list string, field func(string, json.RawMessage, int), element func(json.RawMessage, int)) error {
	delim, _, err := d.Open()
	if err != nil {
		return err
	}
	if delim != '{' {
		d.warn(d.Line(), "the file does not hold an object")
		return nil
	}
	for d.More() {
		name, err := d.Key()
		if err != nil {
			return err
		}
		if name == list {
			err = d.elements(element)
		} else {
			var value json.RawMessage
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

// elements reads a list; anything else in its place is warned of.
func (d *Document) elements(element func(json.RawMessage, int)) error {
	delim, _, err := d.Open()
	if err != nil {
		return err
	}
	if delim != '[' {
		d.warn(d.Line(), "a list was expected")
		for delim == '{' && d.More() {
			if _, err := d.Key(); err != nil {
				return err
			}
			if _, _, err := d.Value(); err != nil {
				return err
			}
		}
		if delim == '{' {
			return d.Close()
		}
		return nil
	}
	for d.More() {
		value, line, err := d.Value()
		if err != nil {
			return err
		}
		element(value, line)
	}
	return d.Close()
}
