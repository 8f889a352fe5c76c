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

func without(value []byte, path []string) []byte {
	name, list := strings.CutSuffix(path[0], "[]")
	all := membersOf(value)
	i := all.find([]byte(name), new(int))
	if i < 0 {
		return value
	}
	var out object
	for j, m := range all {
		switch {
		case j != i:
		case len(path) == 1:
			continue
		case !list:
			m.value = without(m.value, path[1:])
		default:
			m.value = withoutEach(m.value, path[1:])
		}
		out.member(m.name, m.value)
	}
	if b := out.close('{', '}'); b != nil {
		return b
	}
	return []byte("{}")
}

func withoutEach(value json.RawMessage, path []string) json.RawMessage {
	if len(value) == 0 || value[0] != '[' {
		return value
	}
	var out object
	for _, e := range elementsOf(value) {
		out.element(string(without(e, path)))
	}
	if b := out.close('[', ']'); b != nil {
		return b
	}
	return value
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
