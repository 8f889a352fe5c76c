package transcript

import (
	"encoding/json"
	"strings"
)

// Prune returns an entry of the kind without the fields that the table leaves out.
// The entry must be valid JSON; it is returned as it is if it has none of them.
func Prune(entry []byte, table []NotKept, kind string) []byte {
	for _, row := range table {
		if row.Field != "" && row.Covers(kind) {
			entry = without(entry, strings.Split(row.Field, "."))
		}
	}
	return entry
}

func without(entry []byte, path []string) []byte {
	c := cutter{value: entry}
	c.object(0, path)
	if len(c.cuts) == 0 {
		return entry
	}
	out := make([]byte, 0, len(entry))
	from := 0
	for _, cut := range c.cuts {
		out = append(out, entry[from:cut.from]...)
		from = cut.to
	}
	return append(out, entry[from:]...)
}

// cutter finds what is to be cut out of a value, in order.
type cutter struct {
	value []byte
	cuts  []span
}

type span struct{ from, to int }

// object looks for the path in the object at i, if there is one.
func (c *cutter) object(i int, path []string) {
	if i >= len(c.value) || c.value[i] != '{' {
		return
	}
	name, list := strings.CutSuffix(path[0], "[]")
	kept := false // a member before
	first := -1   // where what is cut before the first member that is kept begins
	behind := 0   // where the member before ends
	for j := i + 1; ; {
		j = skipBlank(c.value, j)
		if first >= 0 && j < len(c.value) {
			c.cuts = append(c.cuts, span{first, j})
			first = -1
		}
		if j >= len(c.value) || c.value[j] == '}' {
			return
		}
		begin := skipBlank(c.value, j+stringEnd(c.value[j:]))
		end := valueEnd(c.value, begin)
		switch {
		case !isText(c.value[j:j+stringEnd(c.value[j:])], name):
			kept = true
		case len(path) > 1 && list:
			c.list(begin, path[1:])
			kept = true
		case len(path) > 1:
			c.object(begin, path[1:])
			kept = true
		case kept:
			c.cuts = append(c.cuts, span{behind, end})
		default:
			first = j
		}
		behind, j = end, end
	}
}

// list looks into every element.
func (c *cutter) list(i int, path []string) {
	if i >= len(c.value) || c.value[i] != '[' {
		return
	}
	for j := i + 1; ; {
		j = skipBlank(c.value, j)
		if j >= len(c.value) || c.value[j] == ']' {
			return
		}
		c.object(j, path)
		j = valueEnd(c.value, j)
	}
}

// MemberOf returns the value of an object's member as it stands, and false if there
// is none.
func MemberOf(value []byte, name string) (json.RawMessage, bool) {
	all := membersOf(value)
	if i := all.find([]byte(name), new(int)); i >= 0 {
		return all[i].value, true
	}
	return nil, false
}
