package transcript

import (
	"strconv"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Null is JSON's null.
var Null = jsontext.Value("null")

// Optional is a text that Object omits if it is empty.
type Optional string

// Object makes a JSON object without whitespace. members are names and values alternately, and are written in this
// order: a jsontext.Value unchanged, a string with only the escapes that JSON needs, other values as their JSON.
// Members with the value nil are omitted.
func Object(members ...any) jsontext.Value { return With(jsontext.Value("{}"), members...) }

// With returns an object with further members, as in Object. A value that is no object is returned unchanged.
func With(object jsontext.Value, members ...any) jsontext.Value {
	if len(object) == 0 || object[0] != '{' {
		return object
	}
	room := len(object) + 1
	for _, m := range members {
		room += roomOf(m)
	}
	out := append(make(jsontext.Value, 0, room), object[:len(object)-1]...)
	for i := 0; i+1 < len(members); i += 2 {
		name, _ := members[i].(string)
		switch value := members[i+1].(type) {
		case nil:
			continue
		case Optional:
			if value == "" {
				continue
			}
		case *uint64:
			if value == nil {
				continue
			}
		case []string:
			if value == nil {
				continue
			}
		case jsontext.Value:
			if value == nil {
				continue
			}
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = appendJSON(append(appendJSON(out, name), ':'), members[i+1])
	}
	return append(out, '}')
}

// JSON returns a value as Object writes it.
func JSON(value any) jsontext.Value { return appendJSON(nil, value) }

// List makes a JSON list of values, written as in Object.
func List[T any](items ...T) jsontext.Value {
	room := len("[]")
	for _, item := range items {
		room += roomOf(item)
	}
	return appendList(make(jsontext.Value, 0, room), items)
}

func appendList[T any](dst []byte, items []T) []byte {
	dst = append(dst, '[')
	for i, item := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendJSON(dst, item)
	}
	return append(dst, ']')
}

// roomOf estimates how many bytes a name or a value takes.
func roomOf(value any) int {
	const around = 24 // for punctuation and names, or for a number
	switch v := value.(type) {
	case jsontext.Value:
		return len(v) + 1
	case []jsontext.Value:
		room := around
		for _, one := range v {
			room += len(one) + 1
		}
		return room
	case string:
		return len(v) + len(v)/16 + around
	}
	return around
}

func appendJSON(dst []byte, value any) []byte {
	switch v := value.(type) {
	case bool:
		return strconv.AppendBool(dst, v)
	case int:
		return strconv.AppendInt(dst, int64(v), 10)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case Count:
		return strconv.AppendUint(dst, uint64(v), 10)
	case jsontext.Value:
		return append(dst, v...)
	case string:
		return appendText(dst, v)
	case Optional:
		return appendText(dst, string(v))
	case []jsontext.Value:
		return appendList(dst, v)
	}
	raw, err := jsonv2.Marshal(value, jsonv2.Deterministic(true))
	if err != nil {
		return append(dst, Null...)
	}
	return append(dst, raw...)
}

func appendText(dst []byte, s string) []byte {
	n := len(dst)
	dst, err := jsontext.AppendQuote(dst, s)
	if err != nil {
		dst, _ = jsontext.AppendQuote(dst[:n], strings.ToValidUTF8(s, replacement)) // it is UTF-8 now
	}
	return dst
}
