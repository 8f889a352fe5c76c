package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Difference returns what Amend needs to turn one JSON value into another that
// equals native, or nil if the two are equal. Both must be valid JSON. It is small
// where they have much in common, and it is JSON:
//
//	{"=":value}                                  another value
//	{"set":{…},"del":[…],"in":{name:difference}} an object's members
//	{"cut":[…],"put":{…},"at":{i:difference}}    a list's elements: cut by their
//	                                             positions in base, put and at by
//	                                             those in native
//	{"text":[before,from,to,behind]}             a string around a piece of base
//
// A number that is written in another way is another number.
func Difference(base, native []byte) []byte { return difference(base, native, 0) }

// deepest bounds the comparison of values inside values: below it a value is
// replaced as a whole.
const deepest = 32

// spaced is how many times longer than without it a value with whitespace between
// its tokens may be.
const spaced = 8

func difference(base, native []byte, depth int) []byte {
	if bytes.Equal(base, native) {
		return nil
	}
	var d []byte
	if len(base) > 0 && len(native) > 0 && base[0] == native[0] && depth < deepest {
		equal := false
		switch native[0] {
		case '{':
			d, equal = objectDifference(base, native, depth)
		case '[':
			d, equal = listDifference(base, native, depth)
		case '"':
			d, equal = textDifference(base, native)
		}
		if equal {
			return nil
		}
	}
	if d != nil && len(d) < len(native)/spaced {
		return d
	}
	if whole := Compact(native); d == nil || len(d) > len(whole)+len(`{"=":}`) {
		d = append(append([]byte(`{"=":`), whole...), '}')
	}
	return d
}

func objectDifference(base, native []byte, depth int) (d []byte, equal bool) {
	have, want := membersOf(base), membersOf(native)
	var set, in members
	var del object
	next := 0 // where the same order of members lets the next one be expected
	matched := 0
	for _, w := range want {
		h := have.find(w.name, &next)
		if h < 0 {
			set = append(set, member{w.name, json.RawMessage(Compact(w.value))})
			continue
		}
		matched++
		if sub := difference(have[h].value, w.value, depth+1); sub != nil {
			if value, whole := wholeOf(sub); whole {
				set = append(set, member{w.name, value})
			} else {
				in = append(in, member{w.name, sub})
			}
		}
	}
	if matched < len(have) {
		for _, h := range have {
			if want.find(h.name, new(int)) < 0 {
				del.element(string(appendName(nil, h.name)))
			}
		}
	}
	return joined([]part{{"set", set.sorted()}, {"del", del.close('[', ']')}, {"in", in.sorted()}})
}

func listDifference(base, native []byte, depth int) (d []byte, equal bool) {
	have, want := elementsOf(base), elementsOf(native)
	pairs, ok := align(have, want)
	if !ok {
		return nil, false
	}
	var cut, put, at object
	h := 0
	for i, p := range pairs {
		if p < 0 {
			put.member(strconv.AppendInt(nil, int64(i), 10), []byte(Compact(want[i])))
			continue
		}
		for ; h < p; h++ {
			cut.element(strconv.Itoa(h))
		}
		h = p + 1
		if sub := difference(have[p], want[i], depth+1); sub != nil {
			at.member(strconv.AppendInt(nil, int64(i), 10), sub)
		}
	}
	for ; h < len(have); h++ {
		cut.element(strconv.Itoa(h))
	}
	return joined([]part{{"cut", cut.close('[', ']')}, {"put", put.close('{', '}')}, {"at", at.close('{', '}')}})
}

// textWindow is how much of a string must stand in the other for it to be looked for.
const textWindow = 64

func textDifference(base, native []byte) (d []byte, equal bool) {
	if len(base) < textWindow && len(native) < textWindow && bytes.IndexByte(base, '\\') < 0 && bytes.IndexByte(native, '\\') < 0 &&
		utf8.Valid(base) && utf8.Valid(native) {
		return nil, false // they would be equal as they stand
	}
	have, _ := Text(base)
	want, _ := Text(native)
	if have == want {
		return nil, true
	}
	if len(have) < textWindow || len(want) < textWindow {
		return nil, false
	}
	from := len(have)/2 - textWindow/2
	to := from + textWindow
	found := strings.Index(want, have[from:to])
	if found < 0 {
		return nil, false
	}
	end := found + textWindow
	for from > 0 && found > 0 && have[from-1] == want[found-1] {
		from, found = from-1, found-1
	}
	for to < len(have) && end < len(want) && have[to] == want[end] {
		to, end = to+1, end+1
	}
	before, behind := want[:found], want[end:]
	if !utf8.ValidString(before) || !utf8.ValidString(behind) {
		return nil, false // it would cut a character
	}
	return fmt.Appendf(nil, `{"text":[%s,%d,%d,%s]}`, quoted(before), from, to, quoted(behind)), false
}

// wholeOf returns the value of a difference that replaces the whole.
func wholeOf(d []byte) (value []byte, ok bool) {
	rest, ok := bytes.CutPrefix(d, []byte(`{"=":`))
	if !ok {
		return nil, false
	}
	return rest[:len(rest)-1], true
}

// sorted writes the members by name, so that the order in which an entry has them
// makes no difference.
func (m members) sorted() []byte {
	slices.SortFunc(m, func(a, b member) int { return bytes.Compare(a.name, b.name) })
	var out object
	for _, one := range m {
		out.member(one.name, one.value)
	}
	return out.close('{', '}')
}

// object writes the members of an object, or the elements of a list.
type object struct{ buf []byte }

func (o *object) member(name, value []byte) {
	o.buf = append(o.buf, ',')
	o.buf = appendName(o.buf, name)
	o.buf = append(o.buf, ':')
	o.buf = append(o.buf, value...)
}

// appendName writes a string; most names need no escapes.
func appendName(dst, name []byte) []byte {
	for _, c := range name {
		if c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			return append(dst, quoted(string(name))...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, name...)
	return append(dst, '"')
}

func (o *object) element(value string) {
	o.buf = append(o.buf, ',')
	o.buf = append(o.buf, value...)
}

func (o *object) close(begin, end byte) []byte {
	if len(o.buf) == 0 {
		return nil
	}
	o.buf[0] = begin
	return append(o.buf, end)
}

type part struct {
	name  string
	value []byte
}

func joined(parts []part) (d []byte, equal bool) {
	var out object
	for _, p := range parts {
		if p.value != nil {
			out.member([]byte(p.name), p.value)
		}
	}
	d = out.close('{', '}')
	return d, d == nil
}

// AmendError says why a difference does not fit a value.
type AmendError struct{ Reason string }

func (e *AmendError) Error() string { return "amend entry: " + e.Reason }

func unfit(format string, args ...any) error {
	return &AmendError{Reason: fmt.Sprintf(format, args...)}
}

// Amend applies what Difference returned. The error is an *AmendError if the
// difference is not one, or was made for another base.
func Amend(base, d []byte) ([]byte, error) {
	if !Valid(base) || !Valid(d) {
		return nil, unfit("not JSON")
	}
	return amend([]byte(Compact(base)), []byte(Compact(d)), 0)
}

func amend(base, d []byte, depth int) ([]byte, error) {
	if d[0] != '{' || depth > deepest {
		return nil, unfit("not a difference")
	}
	ops := map[string]json.RawMessage{}
	for _, m := range membersOf(d) {
		ops[string(m.name)] = m.value
	}
	if value, ok := ops["="]; ok {
		return value, nil
	}
	switch base[0] {
	case '{':
		return amendObject(base, ops, depth)
	case '[':
		return amendList(base, ops, depth)
	case '"':
		return amendText(base, ops["text"])
	}
	return nil, unfit("%.40s has no parts", base)
}
