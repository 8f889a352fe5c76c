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

// difference is what turns one JSON value into another, and is JSON itself: what
// Difference returns and Amend takes. A member that is absent changes nothing.
type difference struct {
	// Whole is another value.
	Whole jsontext.Value `json:"=,omitzero"`
	// Set, Del and In are of an object's members: In changes them, by their differences.
	Set members  `json:"set,omitzero"`
	Del []string `json:"del,omitzero"`
	In  members  `json:"in,omitzero"`
	// Cut, Put and At are of a list's elements: cut by their positions in the base, put and
	// changed by those in the other.
	Cut []int   `json:"cut,omitzero"`
	Put members `json:"put,omitzero"`
	At  members `json:"at,omitzero"`
	// Text is a string around a piece of the base: what is before it, where it begins and
	// ends in the base, in bytes, and what is after it.
	Text []any `json:"text,omitzero"`
}

// Difference returns what Amend needs to turn one JSON value into another that
// equals native, or nil if the two are equal. Both must be valid JSON. It is small
// where they have much in common. A number that is written in another way is another
// number. The fields of native that are not kept make no difference.
func Difference(base, native []byte, without ...NotKept) []byte {
	from, to := parse(base), parse(native)
	to.drop(without)
	d, whole := compare(&from, &to, 0)
	if whole {
		return encode(difference{Whole: d})
	}
	return d
}

// deepest bounds the comparison of values inside values: below it a value is
// replaced as a whole.
const deepest = 32

// spaced is how many times longer than without it a value with whitespace between
// its tokens may be.
const spaced = 8

// compare returns nil for equal values, and native as a whole where that is shorter.
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
	// The order in which an entry has its members makes no difference.
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

// alignable bounds the work of finding which elements of two lists belong together.
const alignable = 1 << 18

// align says for each wanted element which one of have it is, or -1: the longest
// common sequence of elements of the same kind, which for objects is their type.
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

// textWindow is how much of a string must be in the other for it to be looked for.
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
	return false, utf8.ValidString(before) && utf8.ValidString(after) // or it would cut a character
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
	for _, i := range slices.Backward(slices.Compact(d.Cut)) {
		if i < 0 || i >= len(all) {
			return nil, unfit("there is no element %d to cut", i)
		}
		all = slices.Delete(all, i, i+1)
	}
	slices.SortStableFunc(d.Put, func(a, b node) int { return position(a.name) - position(b.name) })
	for _, m := range d.Put {
		i := position(m.name)
		if i < 0 || i > len(all) {
			return nil, unfit("no element can be put at %q", m.name)
		}
		all = slices.Insert(all, i, m.raw)
	}
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

// position reads an element's position; -1 is none.
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
