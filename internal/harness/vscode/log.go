package vscode

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
)

// change is a line of the log in which VS Code keeps a chat.
type change struct {
	Kind *int             `json:"kind"`
	Path []jsontext.Value `json:"k"` // names of members and indexes in lists
	// From is the index of a list from which on Value replaces it; nil appends Value.
	From  *int           `json:"i"`
	Value jsontext.Value `json:"v"`
}

// The kinds of changes.
const (
	kindWhole  = iota // the value is the whole chat
	kindSet           // the value replaces what is at the path
	kindAppend        // the value's elements extend the list at the path
	kindDelete        // what is at the path is removed
)

// changes recognises such a log by its first record.
func changes(p transcript.Probe) bool {
	return p.Has("kind", "v.requests") || p.Has("kind", "v.version", "v.sessionId")
}

// replay applies the changes of a log, and returns the resulting chat as JSON.
func replay(in io.Reader, warn transcript.Warn) (io.Reader, error) {
	chat := &value{}
	err := transcript.ReadLines(in, warn, func(l transcript.Record) {
		var c change
		if err := transcript.Decode(l.JSON, &c); err != nil {
			warn(l.Line, "a change that was not read: %v", err)
			return
		}
		c.Value = bytes.Clone(c.Value)
		if err := chat.apply(&c); err != nil {
			warn(l.Line, "a change that does not fit and was not made: %v", err)
		}
	})
	return bytes.NewReader(chat.append(nil)), err
}

// value is a JSON value of a chat. It is parsed only where changes reach into it.
type value struct {
	raw     jsontext.Value
	members map[string]*value
	names   []string // of the members, in order
	list    []*value
	kind    byte // '{' or '[' once parsed, otherwise 0
	gone    bool
}

var (
	errPath = errors.New("there is nothing at its path")
	errKind = errors.New("its kind is unknown")
)

func (v *value) apply(c *change) error {
	switch {
	case c.Kind == nil || *c.Kind < kindWhole || *c.Kind > kindDelete:
		return errKind
	case *c.Kind == kindWhole:
		*v = value{raw: c.Value}
		return nil
	case len(c.Path) == 0:
		return errPath
	}
	if *c.Kind == kindAppend {
		for _, key := range c.Path {
			if v = v.part(key); v == nil {
				return errPath
			}
		}
		return v.extend(c.From, c.Value)
	}
	last := len(c.Path) - 1
	for _, key := range c.Path[:last] {
		if v = v.part(key); v == nil {
			return errPath
		}
	}
	if *c.Kind == kindDelete {
		return v.remove(c.Path[last])
	}
	return v.set(c.Path[last], c.Value)
}

// open parses a value into its parts.
func (v *value) open() {
	if v.kind != 0 || len(v.raw) == 0 || v.raw[0] != '{' && v.raw[0] != '[' {
		return
	}
	dec := jsontext.NewDecoder(bytes.NewReader(v.raw), jsontext.AllowDuplicateNames(true))
	begin, err := dec.ReadToken()
	if err != nil {
		return
	}
	v.kind, v.members = byte(begin.Kind()), map[string]*value{}
	for dec.PeekKind() != ']' && dec.PeekKind() != '}' {
		name := ""
		if v.kind == '{' {
			token, err := dec.ReadToken()
			if err != nil {
				return
			}
			name = token.String()
		}
		raw, err := dec.ReadValue()
		if err != nil {
			return
		}
		v.put(name, bytes.Clone(raw))
	}
	v.raw = nil
}

// put sets a member of an object, or appends to a list.
func (v *value) put(name string, raw jsontext.Value) {
	part := &value{raw: raw}
	if v.kind == '[' {
		v.list = append(v.list, part)
		return
	}
	if _, has := v.members[name]; !has {
		v.names = append(v.names, name)
	}
	v.members[name] = part
}

// place is the index that a key of a path gives; -1 if it is no index.
func place(key jsontext.Value) int {
	at := -1
	if transcript.Decode(key, &at) != nil {
		return -1
	}
	return at
}

// part is the part for a key; nil if there is none.
func (v *value) part(key jsontext.Value) *value {
	v.open()
	name, isName := transcript.Text(key)
	at := place(key)
	switch {
	case v.kind == '{' && isName && v.members[name] != nil && !v.members[name].gone:
		return v.members[name]
	case v.kind == '[' && at >= 0 && at < len(v.list):
		return v.list[at]
	}
	return nil
}

func (v *value) set(key, raw jsontext.Value) error {
	if len(raw) == 0 {
		return v.remove(key) // VS Code omits the value when it sets undefined
	}
	v.open()
	name, isName := transcript.Text(key)
	at := place(key)
	switch {
	case v.kind == '{' && isName, v.kind == '[' && at == len(v.list):
		v.put(name, raw)
	case v.kind == '[' && at >= 0 && at < len(v.list):
		v.list[at] = &value{raw: raw}
	default:
		return errPath
	}
	return nil
}

// remove removes a member of an object; an element of a list becomes null.
func (v *value) remove(key jsontext.Value) error {
	if part := v.part(key); part != nil {
		*part = value{raw: transcript.Null, gone: v.kind == '{'}
	}
	return nil
}

// extend truncates a list to from, if that is set, and appends the elements of another.
func (v *value) extend(from *int, raw jsontext.Value) error {
	v.open()
	if v.kind != '[' || from != nil && *from < 0 {
		return errPath
	}
	if from != nil && *from < len(v.list) {
		v.list = v.list[:*from]
	}
	var more []jsontext.Value
	if len(raw) > 0 {
		if err := transcript.Decode(raw, &more); err != nil {
			return err
		}
	}
	for _, element := range more {
		v.put("", element)
	}
	return nil
}

// append appends the value's JSON to dst.
func (v *value) append(dst []byte) []byte {
	switch v.kind {
	case '{':
		dst = append(dst, '{')
		for _, name := range v.names {
			if part := v.members[name]; !part.gone {
				dst = part.append(append(append(dst, transcript.Quote(name)...), ':'))
				dst = append(dst, ',')
			}
		}
		return append(bytes.TrimSuffix(dst, []byte(",")), '}')
	case '[':
		dst = append(dst, '[')
		for _, part := range v.list {
			dst = append(part.append(dst), ',')
		}
		return append(bytes.TrimSuffix(dst, []byte(",")), ']')
	}
	return append(dst, v.raw...)
}
