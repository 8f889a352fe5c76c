// Package jsonvalue builds the JSON of transcripts: members stay in the order in
// which they were set, and raw JSON stays byte for byte.
package jsonvalue

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Value is JSON that a writer builds: what stands in it is written in the order in
// which it was set, and raw JSON byte for byte. The zero value is null.
type Value struct {
	kind    Kind
	text    string // of a string, or raw JSON
	members []Member
	items   []Value
}

// Member is a member of an object.
type Member struct {
	Name  string
	Value Value
}

// Kind is what a Value is.
type Kind uint8

// The kinds of values.
const (
	KindNull Kind = iota
	KindString
	KindRaw
	KindObject
	KindList
)

// Kind says what the value is.
func (v *Value) Kind() Kind { return v.kind }

// Text is a string's text, or raw JSON.
func (v *Value) Text() string { return v.text }

// Members are those of an object, to be read only.
func (v *Value) Members() []Member { return v.members }

// Items are those of a list, to be read only.
func (v *Value) Items() []Value { return v.items }

// String is a JSON string.
func String(s string) Value { return Value{kind: KindString, text: s} }

// Raw is a value that is JSON already.
func Raw(json string) Value { return Value{kind: KindRaw, text: json} }

// Object is an object with the members.
func Object(members ...Member) Value { return Value{kind: KindObject, members: members} }

// List is a list of the items.
func List(items ...Value) Value { return Value{kind: KindList, items: items} }

// Set sets a member of an object, in its place if there is one of the name.
func (v *Value) Set(name string, value Value) {
	if at := v.Get(name); at != nil {
		*at = value
		return
	}
	v.kind = KindObject
	if v.members == nil {
		v.members = make([]Member, 0, 8)
	}
	v.members = append(v.members, Member{name, value})
}

// SetString is Set, unless s is empty.
func (v *Value) SetString(name, s string) {
	if s != "" {
		v.Set(name, String(s))
	}
}

// Get returns the member, or nil.
func (v *Value) Get(name string) *Value {
	for i := range v.members {
		if v.members[i].Name == name {
			return &v.members[i].Value
		}
	}
	return nil
}

// Append adds items to a list.
func (v *Value) Append(items ...Value) {
	v.kind = KindList
	v.items = append(v.items, items...)
}

// Len is the number of members or items.
func (v *Value) Len() int { return len(v.members) + len(v.items) }

// JSON returns the value's JSON.
func (v *Value) JSON() []byte { return v.AppendJSON(nil) }

// AppendJSON appends the value without whitespace, and strings with the escapes
// that JSON needs.
func (v *Value) AppendJSON(dst []byte) []byte {
	switch v.kind {
	case KindString:
		return appendString(dst, v.text)
	case KindRaw:
		return append(dst, v.text...)
	case KindObject:
		dst = append(dst, '{')
		for i := range v.members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendString(dst, v.members[i].Name), ':')
			dst = v.members[i].Value.AppendJSON(dst)
		}
		return append(dst, '}')
	case KindList:
		dst = append(dst, '[')
		for i := range v.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = v.items[i].AppendJSON(dst)
		}
		return append(dst, ']')
	case KindNull:
	}
	return append(dst, "null"...)
}

func appendString(dst []byte, s string) []byte {
	n := len(dst)
	dst, err := jsontext.AppendQuote(dst, s)
	if err != nil {
		return appendString(dst[:n], strings.ToValidUTF8(s, "\uFFFD"))
	}
	return dst
}
