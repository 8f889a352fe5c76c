package transcript

import (
	"encoding/json"
	"reflect"
	"strings"
	"sync"
)

// typeShape is what a Go type takes of JSON.
type typeShape struct {
	kindOf  reflect.Type
	kind    shapeKind
	element *typeShape // of a list or a pointer
	fields  map[string]fieldShape
}

type fieldShape struct {
	index int
	shape *typeShape
}

type shapeKind uint8

const (
	shapeOther shapeKind = iota // Decode's alone
	shapeOwn                    // reads its JSON itself
	shapeRaw
	shapeString
	shapeBool
	shapeInt
	shapeUint
	shapePointer
	shapeList
	shapeMap
	shapeObject
)

var (
	shapes      sync.Map // *typeShape by reflect.Type
	rawType     = reflect.TypeFor[json.RawMessage]()
	unmarshaler = reflect.TypeFor[json.Unmarshaler]()
)

// fieldsAtMost is how many fields a type may have.
const fieldsAtMost = 64

func shapeOf(t reflect.Type) *typeShape {
	if have, ok := shapes.Load(t); ok {
		if s, ok := have.(*typeShape); ok {
			return s
		}
	}
	s := newShape(t)
	shapes.Store(t, s)
	return s
}

func newShape(t reflect.Type) *typeShape {
	s := &typeShape{kindOf: t}
	switch {
	case t == rawType:
		s.kind = shapeRaw
		return s
	case t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(unmarshaler):
		s.kind = shapeOwn
		return s
	}
	switch t.Kind() {
	case reflect.String:
		s.kind = shapeString
	case reflect.Bool:
		s.kind = shapeBool
	case reflect.Int, reflect.Int64:
		s.kind = shapeInt
	case reflect.Uint64:
		s.kind = shapeUint
	case reflect.Pointer:
		s.kind, s.element = shapePointer, shapeOf(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Uint8 {
			s.kind, s.element = shapeList, shapeOf(t.Elem())
		}
	case reflect.Map:
		if t.Key() == reflect.TypeFor[string]() {
			s.kind, s.element = shapeMap, shapeOf(t.Elem())
		}
	case reflect.Struct:
		s.kind, s.fields = objectShape(t)
	}
	return s
}

// objectShape takes structs whose fields have a name in a tag and nothing more.
func objectShape(t reflect.Type) (shapeKind, map[string]fieldShape) {
	fields := make(map[string]fieldShape, t.NumField())
	if t.NumField() > fieldsAtMost {
		return shapeOther, nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || f.Anonymous || name == "" || name == "-" || (options != "" && options != "omitempty") {
			return shapeOther, nil
		}
		fields[name] = fieldShape{i, shapeOf(f.Type)}
	}
	return shapeObject, fields
}
