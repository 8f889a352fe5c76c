package transcript

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// difference describes how to turn one JSON value, the base, into another. Difference returns its JSON, and Amend
// takes that. Absent members change nothing.
type difference struct {
	// Whole replaces the base.
	Whole jsontext.Value `json:"=,omitzero"`
	// Set, Del and In are for objects: members to set, to delete, and to change by a difference of their own.
	Set members  `json:"set,omitzero"`
	Del []string `json:"del,omitzero"`
	In  members  `json:"in,omitzero"`
	// Cut, Put and At are for lists: elements to remove, by their index in the base; elements to insert and
	// elements to change by a difference, by their index in the result.
	Cut []int   `json:"cut,omitzero"`
	Put members `json:"put,omitzero"`
	At  members `json:"at,omitzero"`
	// Text is for strings, and replaces the base by a new beginning, a piece of the base, and a new end. Its
	// four items are the beginning, the offsets in bytes at which the piece begins and ends, and the end.
	Text []any `json:"text,omitzero"`
}

// Difference returns the difference with which Amend turns base into a value equal to native; nil if the two are
// equal. Both must be valid JSON. The more they have in common, the smaller it is. Numbers are compared as written: 1
// and 1.0 differ. It ignores the fields of native that the rows of without name.
func Difference(base, native []byte, without ...NotKept) []byte {
	from, to := parse(base), parse(native)
	to.drop(without)
	d, whole := compare(&from, &to, 0)
	if whole {
		return encode(difference{Whole: d})
	}
	return d
}

// deepest is the nesting depth from which on values are not compared but replaced as a whole.
const deepest = 32

// spaced is the assumed greatest factor by which whitespace between tokens makes a value longer. So a difference that
// is shorter than the value's bytes divided by spaced is shorter than the compact value, which need not be computed.
const spaced = 8

// compare returns the difference between two values; nil if they are equal. If native itself is shorter, it returns
// that, and whole is true.
func compare(base, native *node, depth int) (d jsontext.Value, whole bool) {
	if native.raw != nil && bytes.Equal(base.raw, native.raw) {
		return nil, false
	}
	var found difference
	ok := false
	if depth < deepest && base.kind == native.kind {
		var equal bool
		switch native.kind {
		case '{':
			equal, ok = found.objects(base, native, depth), true
		case '[':
			equal, ok = found.lists(base.parts, native.parts, depth)
		case '"':
			equal, ok = found.texts(base.raw, native.raw)
		}
		if equal {
			return nil, false
		}
	}
	if ok {
		d = encode(found)
		if all := native.json(); len(d) < len(all)/spaced || len(d) <= len(Compacted(all))+len(`{"=":}`) {
			return d, false
		}
	}
	return native.json(), true
}

func (d *difference) objects(base, native *node, depth int) (equal bool) {
	last, both := first(), 0
	for i := range native.parts {
		want := &native.parts[i]
		have := base.find(want.name, last)
		if have == nil {
			d.Set = append(d.Set, node{name: want.name, raw: want.json()})
			continue
		}
		both++
		if sub, whole := compare(have, want, depth+1); whole {
			d.Set = append(d.Set, node{name: want.name, raw: sub})
		} else if sub != nil {
			d.In = append(d.In, node{name: want.name, raw: sub})
		}
	}
	for i := range base.parts {
		if name := base.parts[i].name; both < len(base.parts) && native.find(name, last) == nil {
			d.Del = append(d.Del, string(name))
		}
	}
	// The order of an entry's members is not kept, so the difference sorts them.
	byName := func(a, b node) int { return bytes.Compare(a.name, b.name) }
	slices.SortFunc(d.Set, byName)
	slices.SortFunc(d.In, byName)
	return d.Set == nil && d.In == nil && d.Del == nil
}

func (d *difference) lists(have, want []node, depth int) (equal, ok bool) {
	pairs, ok := align(have, want)
	if !ok {
		return false, false
	}
	h := 0
	for i, p := range pairs {
		name := strconv.AppendInt(nil, int64(i), 10)
		if p < 0 {
			d.Put = append(d.Put, node{name: name, raw: want[i].json()})
			continue
		}
		for ; h < p; h++ {
			d.Cut = append(d.Cut, h)
		}
		h = p + 1
		if sub, whole := compare(&have[p], &want[i], depth+1); whole {
			d.At = append(d.At, node{name: name, raw: encode(difference{Whole: sub})})
		} else if sub != nil {
			d.At = append(d.At, node{name: name, raw: sub})
		}
	}
	for ; h < len(have); h++ {
		d.Cut = append(d.Cut, h)
	}
	return d.Cut == nil && d.Put == nil && d.At == nil, true
}

// alignable bounds the size of the table in which align compares two lists.
const alignable = 1 << 18

// align returns, for each element of want, the index of its counterpart in have, or -1. Counterparts form the
// longest common subsequence of elements of the same kind; the kind of an object includes its type. ok is
// false if the lists are too long.
func align(have, want []node) (pairs []int, ok bool) {
	h, w := kinds(have), kinds(want)
	pairs = make([]int, len(w))
	first := 0
	for first < len(h) && first < len(w) && h[first] == w[first] {
		pairs[first] = first
		first++
	}
	n, m := len(h)-first, len(w)-first
	if n*m > alignable {
		return nil, false
	}
	length := make([][]int, n+1)
	for i := range length {
		length[i] = make([]int, m+1)
	}
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			if h[first+i] == w[first+j] {
				length[i][j] = length[i+1][j+1] + 1
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}
	for j := range m {
		pairs[first+j] = -1
	}
	for i, j := 0, 0; i < n && j < m; {
		switch {
		case h[first+i] == w[first+j]:
			pairs[first+j] = first + i
			i, j = i+1, j+1
		case length[i+1][j] >= length[i][j+1]:
			i++
		default:
			j++
		}
	}
	return pairs, true
}

func kinds(elements []node) []string {
	all := make([]string, len(elements))
	for i := range elements {
		all[i] = elements[i].kind.String()
		if elements[i].kind != '{' {
			continue
		}
		if kind := elements[i].find([]byte("type"), first()); kind != nil {
			all[i] += string(kind.json())
		}
	}
	return all
}

// textWindow is how many bytes from the middle of the base are searched for in a string.
const textWindow = 64

func (d *difference) texts(base, native jsontext.Value) (equal, ok bool) {
	have, _ := Text(base)
	want, _ := Text(native)
	if have == want {
		return true, true
	}
	if len(have) < textWindow || len(want) < textWindow {
		return false, false
	}
	from := len(have)/2 - textWindow/2
	to := from + textWindow
	found := strings.Index(want, have[from:to])
	if found < 0 {
		return false, false
	}
	end := found + textWindow
	for from > 0 && found > 0 && have[from-1] == want[found-1] {
		from, found = from-1, found-1
	}
	for to < len(have) && end < len(want) && have[to] == want[end] {
		to, end = to+1, end+1
	}
	before, after := want[:found], want[end:]
	d.Text = []any{before, from, to, after}
	return false, utf8.ValidString(before) && utf8.ValidString(after) // not if the piece ends inside a character
}

// AmendError says why a difference cannot be applied to a value.
type AmendError struct{ Reason string }

func (e *AmendError) Error() string { return "amend entry: " + e.Reason }

func unfit(format string, args ...any) error {
	return &AmendError{Reason: fmt.Sprintf(format, args...)}
}

// Amend applies a difference to base. The error is an *AmendError if d is not a difference, or one of another
// base.
func Amend(base, d []byte) ([]byte, error) {
	if !Valid(base) || !Valid(d) {
		return nil, unfit("not JSON")
	}
	amended, err := amend(base, d, 0)
	return Compacted(amended), err
}

func amend(base, raw jsontext.Value, depth int) (jsontext.Value, error) {
	var d difference
	if raw.Kind() != '{' || depth > deepest || Decode(raw, &d) != nil {
		return nil, unfit("not a difference")
	}
	if d.Whole != nil {
		return d.Whole, nil
	}
	switch base.Kind() {
	case '{':
		all, err := d.amendObject(membersOf(base), depth)
		return encode(all), err
	case '[':
		var all []jsontext.Value
		if err := Decode(base, &all); err != nil {
			return nil, unfit("%v", err)
		}
		all, err := d.amendList(all, depth)
		return encode(all), err
	case '"':
		return d.amendText(base)
	}
	return nil, unfit("%.40s has no parts", base)
}

func (d *difference) amendObject(all members, depth int) (members, error) {
	gone := map[string]bool{}
	for _, name := range d.Del {
		gone[name] = true
	}
	all = slices.DeleteFunc(all, func(m node) bool { return gone[string(m.name)] })
	at := make(map[string]int, len(all))
	for i, m := range all {
		at[string(m.name)] = i
	}
	for _, m := range d.In {
		i, ok := at[string(m.name)]
		if !ok {
			return nil, unfit("there is no member %q", m.name)
		}
		var err error
		if all[i].raw, err = amend(all[i].raw, m.raw, depth+1); err != nil {
			return nil, err
		}
	}
	for _, m := range d.Set {
		if i, ok := at[string(m.name)]; ok {
			all[i].raw = m.raw
		} else {
			all = append(all, m)
		}
	}
	return all, nil
}

func (d *difference) amendList(all []jsontext.Value, depth int) ([]jsontext.Value, error) {
	slices.Sort(d.Cut)
	d.Cut = slices.Compact(d.Cut)
	for _, i := range d.Cut {
		if i < 0 || i >= len(all) {
			return nil, unfit("there is no element %d to cut", i)
		}
	}
	var rest []jsontext.Value
	for i, one := range all {
		if len(d.Cut) > 0 && d.Cut[0] == i {
			d.Cut = d.Cut[1:]
			continue
		}
		rest = append(rest, one)
	}
	slices.SortStableFunc(d.Put, func(a, b node) int { return position(a.name) - position(b.name) })
	all = make([]jsontext.Value, 0, len(rest)+len(d.Put))
	for _, m := range d.Put {
		more := position(m.name) - len(all)
		if more < 0 || more > len(rest) {
			return nil, unfit("no element can be put at %q", m.name)
		}
		all, rest = append(append(all, rest[:more]...), m.raw), rest[more:]
	}
	all = append(all, rest...)
	for _, m := range d.At {
		i := position(m.name)
		if i < 0 || i >= len(all) {
			return nil, unfit("there is no element %q", m.name)
		}
		var err error
		if all[i], err = amend(all[i], m.raw, depth+1); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// position parses the index of an element; -1 if it is invalid.
func position(name []byte) int {
	i, err := strconv.Atoi(string(name))
	if err != nil || i < 0 || i > 1<<30 {
		return -1
	}
	return i
}

func (d *difference) amendText(base jsontext.Value) (jsontext.Value, error) {
	have, _ := Text(base)
	if len(d.Text) != 4 {
		return nil, unfit("text has %d parts and not four", len(d.Text))
	}
	before, ok1 := d.Text[0].(string)
	from, ok2 := d.Text[1].(float64)
	to, ok3 := d.Text[2].(float64)
	after, ok4 := d.Text[3].(string)
	if !ok1 || !ok2 || !ok3 || !ok4 || from < 0 || to < from || to > float64(len(have)) {
		return nil, unfit("text does not fit")
	}
	return encode(before + have[int(from):int(to)] + after), nil
}
