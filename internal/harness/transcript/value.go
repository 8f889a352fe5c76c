package transcript

import (
	"bytes"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// node is a parsed JSON value.
type node struct {
	name  []byte // if it is a member of an object
	kind  jsontext.Kind
	raw   jsontext.Value // a slice of the input; nil once parts were dropped
	parts []node         // the members of an object, or the elements of a list
}

// parse parses a value, which must be valid JSON. Of members with the same name it keeps the last.
func parse(value []byte) node {
	return parseLevels(value, -1)
}

// parseLevels does the same as parse for a number of levels. Deeper values have only raw JSON, and no parts.
func parseLevels(value []byte, levels int) node {
	dec := jsontext.NewDecoder(bytes.NewBuffer(value), lenient)
	n, err := read(dec, value, levels)
	if err != nil {
		return node{raw: value}
	}
	return n
}

func read(dec *jsontext.Decoder, value []byte, levels int) (n node, err error) {
	n.kind = dec.PeekKind()
	if levels == 0 || n.kind != '{' && n.kind != '[' {
		n.raw, err = dec.ReadValue()
		n.raw = before(dec, value, len(n.raw))
		return n, err
	}
	if _, err = dec.ReadToken(); err != nil {
		return n, err
	}
	from := dec.InputOffset() - 1
	for dec.PeekKind() != n.kind+2 { // what closes it
		var name []byte
		if n.kind == '{' {
			if name, err = dec.ReadValue(); err != nil {
				return n, err
			}
			name = unquoted(before(dec, value, len(name)))
		}
		part, err := read(dec, value, levels-1)
		if err != nil {
			return n, err
		}
		part.name = name
		if n.parts == nil && n.kind == '{' {
			n.parts = make([]node, 0, 8)
		}
		n.parts = append(n.parts, part)
	}
	if n.kind == '{' {
		n.parts = lastOf(n.parts)
	}
	_, err = dec.ReadToken()
	n.raw = value[from:dec.InputOffset()]
	return n, err
}

// before returns the slice of value with the n bytes that dec read last.
func before(dec *jsontext.Decoder, value []byte, n int) []byte {
	end := int(dec.InputOffset())
	return value[end-n : end : end]
}

// unquoted returns the text of a JSON string: a slice of it if it has no escapes.
func unquoted(value []byte) []byte {
	if bytes.IndexByte(value, '\\') < 0 {
		return value[1 : len(value)-1]
	}
	text, _ := Text(value)
	return []byte(text)
}

// few is the number of members up to which a linear search is used instead of a map.
const few = 24

// lastOf keeps the last of members with the same name.
func lastOf(all []node) []node {
	repeated := func(i int) bool {
		return slices.ContainsFunc(all[i+1:], func(n node) bool { return bytes.Equal(n.name, all[i].name) })
	}
	if len(all) > few {
		last := make(map[string]int, len(all))
		for i := range all {
			last[string(all[i].name)] = i
		}
		repeated = func(i int) bool { return last[string(all[i].name)] != i }
	}
	for i := range all {
		if repeated(i) {
			out := make([]node, 0, len(all))
			for i := range all {
				if !repeated(i) {
					out = append(out, all[i])
				}
			}
			return out
		}
	}
	return all
}

// find returns the member of the name, or nil. It begins at the member after *last, because the members of
// two objects mostly come in the same order.
func (n *node) find(name []byte, last *int) *node {
	for range n.parts {
		if *last++; *last >= len(n.parts) {
			*last = 0
		}
		if part := &n.parts[*last]; bytes.Equal(part.name, name) {
			return part
		}
	}
	return nil
}

// first returns a last for find that begins at the first member.
func first() *int { i := -1; return &i }

// json returns the value's JSON.
func (n *node) json() jsontext.Value {
	if n.raw == nil && n.kind == '{' {
		n.raw = encode(members(n.parts))
	} else if n.raw == nil {
		list := make([]jsontext.Value, len(n.parts))
		for i := range n.parts {
			list[i] = n.parts[i].json()
		}
		n.raw = encode(list)
	}
	return n.raw
}

// Without returns a value without the fields of NotKept rows. It must be valid JSON, and is returned
// unchanged if it has none of the fields.
func Without(value []byte, fields ...NotKept) []byte {
	n := parse(value)
	if n.drop(fields); n.raw != nil {
		return value
	}
	return n.json()
}

func (n *node) drop(fields []NotKept) {
	for _, row := range fields {
		n.dropPath(strings.Split(row.Field, "."))
	}
}

// dropPath removes the member at a path, and reports whether there was one.
func (n *node) dropPath(path []string) (dropped bool) {
	name, list := strings.CutSuffix(path[0], "[]")
	at := n.find([]byte(name), first())
	switch {
	case at == nil || n.kind != '{':
	case len(path) == 1:
		n.parts = slices.DeleteFunc(n.parts, func(part node) bool { return string(part.name) == name })
		dropped = true
	case !list:
		dropped = at.dropPath(path[1:])
	case at.kind == '[':
		for i := range at.parts {
			dropped = at.parts[i].dropPath(path[1:]) || dropped
		}
		if dropped {
			at.raw = nil
		}
	}
	if dropped {
		n.raw = nil
	}
	return dropped
}

// members are the members of an object.
type members []node

// UnmarshalJSONFrom reads an object.
func (m *members) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	value, err := dec.ReadValue()
	if err == nil && value.Kind() != '{' {
		err = &ShapeError{Kind: kindName(value.Kind())}
	}
	*m = membersOf(slices.Clone(value))
	return err
}

// MarshalJSONTo writes an object.
func (m members) MarshalJSONTo(enc *jsontext.Encoder) error {
	err := enc.WriteToken(jsontext.BeginObject)
	for i := range m {
		if err == nil {
			err = enc.WriteToken(jsontext.String(string(m[i].name)))
		}
		if err == nil {
			err = enc.WriteValue(m[i].json())
		}
	}
	if err == nil {
		err = enc.WriteToken(jsontext.EndObject)
	}
	return err
}

// membersOf returns the members of an object; nil for any other value.
func membersOf(value []byte) members {
	if n := parseLevels(value, 1); n.kind == '{' {
		return n.parts
	}
	return nil
}

// encode writes JSON without whitespace; raw values in it otherwise keep their bytes.
func encode(v any) jsontext.Value {
	raw, err := jsonv2.Marshal(v, lenient, jsontext.PreserveRawStrings(true))
	if err != nil {
		return jsontext.Value("null") // a raw value that is not JSON
	}
	return raw
}

// Compact returns a JSON value without the whitespace between tokens; all other bytes stay the same. The value must
// be valid JSON or absent; then the result is an empty object.
func Compact(value []byte) string { return string(Compacted(value)) }

// Compacted does the same as Compact, for bytes. The result may share memory with the value.
func Compacted(value []byte) []byte {
	if len(value) == 0 {
		return []byte("{}")
	}
	if !bytes.ContainsAny(value, " \n\t\r") {
		return value
	}
	out := jsontext.Value(bytes.Clone(value))
	if out.Compact() != nil {
		return value
	}
	return out
}

// Rewrite returns the object with each member's value replaced by what member returns for it, and without the
// members for which that is nil. The object must be valid JSON.
func Rewrite(object []byte, member func(name string, value []byte) []byte) []byte {
	all := membersOf(object)
	out := all[:0]
	for _, m := range all {
		if m.raw = member(string(m.name), m.raw); m.raw != nil {
			out = append(out, m)
		}
	}
	return encode(out)
}

// MemberOf returns the JSON of an object's member; false if there is none.
func MemberOf(value []byte, name string) (found jsontext.Value, ok bool) {
	n := parseLevels(value, 1)
	if part := n.find([]byte(name), first()); part != nil && n.kind == '{' {
		return part.raw, true
	}
	return nil, false
}
