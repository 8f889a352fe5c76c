package transcript

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// DecodePart is Decode for a value that is known to be JSON, such as a record that
// was read or a part of one: it finds the members without looking at
// every character of them. A json.RawMessage in into is a piece of value, not a copy
// of it, and whoever keeps it keeps the value's bytes.
func DecodePart(value []byte, into any) error {
	if at := reflect.ValueOf(into).Elem(); at.IsZero() && bare(value) {
		if shapeOf(at.Type()).fill(value, at) {
			return nil
		}
		at.SetZero()
	}
	return Decode(value, into)
}

// bare reports whether no whitespace stands around the value.
func bare(value []byte) bool {
	return len(value) > 0 && value[0] > ' ' && value[len(value)-1] > ' '
}

// fill reads a value. It is false for one that is not of the shape, and where
// Decode knows better: then what has been read so far means nothing.
func (s *typeShape) fill(value []byte, into reflect.Value) bool {
	if len(value) == 0 {
		return false
	}
	switch s.kind {
	case shapeRaw:
		into.SetBytes(value)
		return true
	case shapeOwn:
		own, ok := into.Addr().Interface().(json.Unmarshaler)
		return ok && own.UnmarshalJSON(value) == nil
	case shapeOther:
		return Decode(value, into.Addr().Interface()) == nil
	}
	if value[0] == 'n' {
		return true // into has its zero value
	}
	switch s.kind {
	case shapeString:
		text, ok := textOfPart(value)
		if ok {
			into.SetString(text)
		}
		return ok
	case shapeBool:
		into.SetBool(value[0] == 't')
		return value[0] == 't' || value[0] == 'f'
	case shapeInt:
		n, err := strconv.ParseInt(string(value), 10, into.Type().Bits())
		into.SetInt(n)
		return err == nil && value[0] != '+'
	case shapeUint:
		n, err := strconv.ParseUint(string(value), 10, into.Type().Bits())
		into.SetUint(n)
		return err == nil
	case shapePointer:
		to := reflect.New(s.element.kindOf)
		into.Set(to)
		return s.element.fill(value, to.Elem())
	case shapeList:
		return s.fillList(value, into)
	case shapeMap:
		return s.fillMap(value, into)
	}
	return s.fillObject(value, into)
}

func (s *typeShape) fillList(value []byte, into reflect.Value) bool {
	if value[0] != '[' {
		return false
	}
	into.Set(reflect.MakeSlice(s.kindOf, 0, 2))
	for i, n := 1, 0; ; n++ {
		i = skipBlank(value, i)
		if i >= len(value) {
			return false
		}
		if value[i] == ']' {
			return true
		}
		end := valueEnd(value, i)
		if n == into.Cap() {
			into.Grow(n)
		}
		into.SetLen(n + 1)
		if !s.element.fill(value[i:end:end], into.Index(n)) {
			return false
		}
		i = end
	}
}

func (s *typeShape) fillObject(value []byte, into reflect.Value) bool {
	if value[0] != '{' {
		return false
	}
	seen := uint64(0)
	for i := 1; ; {
		i = skipBlank(value, i)
		if i >= len(value) {
			return false
		}
		if value[i] == '}' {
			return true
		}
		end := i + stringEnd(value[i:])
		if end-i < 2 {
			return false
		}
		name := value[i+1 : end-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			return false
		}
		i = skipBlank(value, end)
		end = valueEnd(value, i)
		if f, ok := s.fields[string(name)]; ok {
			// Of members with the same name the last one counts, on top of the others.
			if seen&(1<<f.index) != 0 || !f.shape.fill(value[i:end:end], into.Field(f.index)) {
				return false
			}
			seen |= 1 << f.index
		}
		i = end
	}
}

func (s *typeShape) fillMap(value []byte, into reflect.Value) bool {
	if value[0] != '{' {
		return false
	}
	all := members(appendMembers(nil, value))
	if len(all) != len(slices.Clone(all).last()) {
		return false // the values of those with the same name come on top of each other
	}
	into.Set(reflect.MakeMapWithSize(s.kindOf, len(all)))
	for _, m := range all {
		element := reflect.New(s.element.kindOf).Elem()
		if !s.element.fill(m.value, element) {
			return false
		}
		into.SetMapIndex(reflect.ValueOf(string(m.name)), element)
	}
	return true
}

// textOfPart reads a string; ok is false for anything else.
func textOfPart(value []byte) (text string, ok bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	inner := value[1 : len(value)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), utf8.Valid(inner)
	}
	unquoted, err := jsontext.AppendUnquote(make([]byte, 0, len(inner)), value)
	return string(unquoted), err == nil
}
