package transcript

import (
	"bytes"
	"slices"

	"github.com/contextd/contextd/internal/harness/transcript/jsonvalue"
)

// Differ finds what Difference finds, without writing the base down first. It uses
// its memory again, and is for one goroutine; the zero value is ready.
type Differ struct {
	members  []member  // of the objects on the way down
	elements []element // of the lists
	in       []member  // differences inside of members
	out      []byte    // everything written for one difference
}

// Difference returns what the function does for the base's JSON. The result is the
// Differ's, until its next one.
func (d *Differ) Difference(base *jsonvalue.Value, native []byte) []byte {
	d.members, d.elements, d.in, d.out = d.members[:0], d.elements[:0], d.in[:0], d.out[:0]
	sub, equal := d.value(base, native, 0)
	if equal {
		return nil
	}
	return sub
}

func (d *Differ) value(base *jsonvalue.Value, native []byte, depth int) (sub []byte, equal bool) {
	if len(native) > 0 && depth < deepest {
		switch kind := base.Kind(); {
		case kind == jsonvalue.KindString && native[0] == '"':
			if isText(native, base.Text()) {
				return nil, true
			}
		case kind == jsonvalue.KindRaw:
			if isCompacted(native, base.Text()) {
				return nil, true
			}
		case kind == jsonvalue.KindObject && native[0] == '{':
			at := len(d.members)
			d.split(native)
			sub, equal = d.object(base, at, len(d.members), depth)
			d.members = d.members[:at]
			return d.shorter(sub, equal, native)
		case kind == jsonvalue.KindList && native[0] == '[':
			if sub, equal, ok := d.list(base, native, depth); ok {
				return d.shorter(sub, equal, native)
			}
		}
	}
	return d.plain(base, native, depth)
}

// plain writes the base down and compares it as any other JSON.
func (d *Differ) plain(base *jsonvalue.Value, native []byte, depth int) (sub []byte, equal bool) {
	from := len(d.out)
	d.out = base.AppendJSON(d.out)
	sub = difference(d.out[from:], native, depth)
	d.out = d.out[:from]
	return sub, sub == nil
}

// shorter is the difference, or the whole where that is shorter.
func (d *Differ) shorter(sub []byte, equal bool, native []byte) ([]byte, bool) {
	if equal || len(sub) < len(native)/spaced || len(sub) <= compactLen(native)+len(`{"=":}`) {
		return sub, equal
	}
	return d.wrote(func(out []byte) []byte {
		return append(appendCompact(append(out, `{"=":`...), native), '}')
	}), false
}

// wrote returns what write appends.
func (d *Differ) wrote(write func(out []byte) []byte) []byte {
	from := len(d.out)
	d.out = write(d.out)
	return d.out[from:len(d.out):len(d.out)]
}

// object compares with the members from at to end.
func (d *Differ) object(base *jsonvalue.Value, at, end, depth int) (sub []byte, equal bool) {
	have := base.Members()
	inside := len(d.in)
	defer func() { d.in = d.in[:inside] }()
	set, matched, next := 0, 0, 0
	for i := at; i < end; i++ {
		w := d.members[i]
		h := findValue(have, w.name, &next)
		if h >= 0 {
			matched++
			sub, equal := d.value(&have[h].Value, w.value, depth+1)
			if equal {
				continue
			}
			whole, ok := wholeOf(sub)
			if !ok {
				d.in = append(d.in, member{w.name, sub})
				continue
			}
			w.value = whole
		}
		// What is to be set comes to stand first among the members.
		d.members[i], d.members[at+set] = d.members[at+set], w
		set++
	}
	if set == 0 && len(d.in) == inside && matched == len(have) {
		return nil, true
	}
	wanted := members(d.members[at:end])
	slices.SortFunc(wanted[:set], byName)
	slices.SortFunc(d.in[inside:], byName)
	return d.wrote(func(out []byte) []byte {
		from := len(out)
		out = appendPart(out, "set", wanted[:set])
		if matched < len(have) {
			out = append(out, `,"del":`...)
			first := byte('[')
			for i := range have {
				if name := []byte(have[i].Name); wanted.find(name, new(int)) < 0 {
					out = appendName(append(out, first), name)
					first = ','
				}
			}
			out = append(out, ']')
		}
		out = appendPart(out, "in", d.in[inside:])
		out[from] = '{'
		return append(out, '}')
	}), false
}

func byName(a, b member) int { return bytes.Compare(a.name, b.name) }

// appendPart writes members as one part of a difference, without spaces.
func appendPart(out []byte, name string, all []member) []byte {
	if len(all) == 0 {
		return out
	}
	out = append(append(append(out, `,"`...), name...), `":`...)
	from := len(out)
	for _, m := range all {
		out = append(appendName(append(out, ','), m.name), ':')
		out = appendCompact(out, m.value)
	}
	out[from] = '{'
	return append(out, '}')
}

func findValue(have []jsonvalue.Member, name []byte, next *int) int {
	for range have {
		if *next >= len(have) {
			*next = 0
		}
		i := *next
		*next++
		if have[i].Name == string(name) {
			return i
		}
	}
	return -1
}

// list compares lists whose elements are of the same kinds one by one; ok is false
// for others.
func (d *Differ) list(base *jsonvalue.Value, native []byte, depth int) (sub []byte, equal, ok bool) {
	have, from, room := base.Items(), len(d.elements), len(d.members)
	inside := len(d.in)
	defer func() { d.in, d.elements, d.members = d.in[:inside], d.elements[:from], d.members[:room] }()
	if !d.elementsAlike(have, native) {
		return nil, false, false
	}
	for i := range have {
		w := d.elements[from+i]
		if have[i].Kind() == jsonvalue.KindObject && depth+1 < deepest {
			sub, equal = d.object(&have[i], w.at, w.end, depth+1)
			sub, equal = d.shorter(sub, equal, w.value)
		} else {
			sub, equal = d.value(&have[i], w.value, depth+1)
		}
		if !equal {
			d.in = append(d.in, member{positionName(i), sub})
		}
	}
	if len(d.in) == inside {
		return nil, true, true
	}
	return d.wrote(func(out []byte) []byte {
		from := len(out)
		out = appendPart(out, "at", d.in[inside:])
		out[from] = '{'
		return append(out, '}')
	}), false, true
}

// element is one of a list, with the place of its members if it is an object.
type element struct {
	value   []byte
	at, end int
}

// elementsAlike splits a list and reports whether it has as many elements, and each
// of the kind that align would put together.
func (d *Differ) elementsAlike(have []jsonvalue.Value, native []byte) bool {
	n := 0
	for i := 1; ; n++ {
		i = skipBlank(native, i)
		if i >= len(native) || native[i] == ']' {
			return n == len(have)
		}
		end := valueEnd(native, i)
		e := element{value: native[i:end:end], at: len(d.members)}
		if n >= len(have) || !d.alike(&have[n], e.value) {
			return false
		}
		e.end = len(d.members)
		d.elements = append(d.elements, e)
		i = end
	}
}

// alike compares the kinds of two elements, and leaves an object's members among
// the others.
func (d *Differ) alike(have *jsonvalue.Value, want []byte) bool {
	switch have.Kind() {
	case jsonvalue.KindString:
		return want[0] == '"'
	case jsonvalue.KindList:
		return want[0] == '['
	case jsonvalue.KindObject:
		if want[0] != '{' {
			return false
		}
		at := len(d.members)
		d.split(want)
		all := members(d.members[at:])
		i := all.find([]byte("type"), new(int))
		kind := have.Get("type")
		if i < 0 || kind == nil {
			return i < 0 && kind == nil
		}
		from := len(d.out)
		d.out = kind.AppendJSON(d.out)
		same := bytes.Equal(d.out[from:], all[i].value)
		d.out = d.out[:from]
		return same
	}
	return false
}

// split puts an object's members behind the others.
func (d *Differ) split(object []byte) {
	at := len(d.members)
	d.members = appendMembers(d.members, object)
	d.members = d.members[:at+len(members(d.members[at:]).last())]
}
