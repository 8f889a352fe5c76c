package transcript

import (
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// ReadObject reads a file that is one JSON object. Each element of the list named
// is given to element as it is read, and every other member to field. A file that
// is truncated or damaged is read up to there with a warning. The bytes given are the
// callee's.
func ReadObject(r io.Reader, warn Warn, list string,
	field func(name string, value jsontext.Value, line int), element func(value jsontext.Value, line int),
) error {
	doc := NewDocument(r, warn)
	return doc.Settle(doc.object(list, field, element))
}

func (d *Document) object(list string, field func(string, jsontext.Value, int), element func(jsontext.Value, int)) error {
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

// List reads a list and gives element each of its elements. Another value in its place is
// read with a warning, and ok is false; null is no list and no warning.
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

// Rest gives element each further element of the list that is open, and reads its
// end.
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
