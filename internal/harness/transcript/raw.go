package transcript

import (
	"bytes"
	"encoding/json"
)

// member is one member of a JSON object, its value as it stands.
type member struct {
	name  []byte
	value json.RawMessage
}

type members []member

// find returns the position of a member, or -1. It looks at *next first, and moves
// it behind what it found: members mostly come in the same order.
func (m members) find(name []byte, next *int) int {
	for range m {
		if *next >= len(m) {
			*next = 0
		}
		i := *next
		*next++
		if bytes.Equal(m[i].name, name) {
			return i
		}
	}
	return -1
}

// membersOf splits an object; of members with the same name the last one counts.
// The value must be valid JSON, and what is no object has no members.
func membersOf(value []byte) members {
	return members(appendMembers(nil, value)).last()
}

// appendMembers appends them as they stand, those with the same name too.
func appendMembers(all []member, value []byte) []member {
	if len(value) == 0 || value[0] != '{' {
		return all
	}
	for i := 1; ; {
		i = skipBlank(value, i)
		if i >= len(value) || value[i] == '}' {
			return all
		}
		end := i + stringEnd(value[i:])
		name := value[i+1 : end-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			text, _ := Text(value[i:end])
			name = []byte(text)
		}
		i = skipBlank(value, end)
		end = valueEnd(value, i)
		if all == nil {
			all = make(members, 0, 8)
		}
		all = append(all, member{name, value[i:end:end]})
		i = end
	}
}

// last keeps the last of members with the same name.
func (m members) last() members {
	if len(m) > manyMembers {
		return m.lastOfMany()
	}
	for i := 0; i < len(m); i++ {
		for j := i + 1; j < len(m); j++ {
			if bytes.Equal(m[i].name, m[j].name) {
				m = append(m[:i], m[i+1:]...)
				i--
				break
			}
		}
	}
	return m
}

// manyMembers is from where on a map is the quicker way to find equal names.
const manyMembers = 24

func (m members) lastOfMany() members {
	at := make(map[string]int, len(m))
	for i := range m {
		at[string(m[i].name)] = i
	}
	if len(at) == len(m) {
		return m
	}
	out := m[:0]
	for i := range m {
		if at[string(m[i].name)] == i {
			out = append(out, m[i])
		}
	}
	return out
}

// elementsOf splits a list likewise.
func elementsOf(value []byte) []json.RawMessage {
	if len(value) == 0 || value[0] != '[' {
		return nil
	}
	var all []json.RawMessage
	for i := 1; ; {
		i = skipBlank(value, i)
		if i >= len(value) || value[i] == ']' {
			return all
		}
		end := valueEnd(value, i)
		all = append(all, value[i:end:end])
		i = end
	}
}

// skipBlank passes whitespace, commas and colons.
func skipBlank(value []byte, i int) int {
	for i < len(value) {
		switch value[i] {
		case ' ', '\t', '\n', '\r', ',', ':':
			i++
		default:
			return i
		}
	}
	return i
}

// What valueEnd stops at: outside of lists and objects, and inside of them.
var (
	endsScalar  = stopsAt(",]} \n\t\r")
	inContainer = stopsAt("\"{[]}")
)

func stopsAt(chars string) (stops [256]bool) {
	for i := range len(chars) {
		stops[chars[i]] = true
	}
	return stops
}

// valueEnd is where the value ends that begins at i.
func valueEnd(value []byte, i int) int {
	if i >= len(value) {
		return i
	}
	switch value[i] {
	case '"':
		return i + stringEnd(value[i:])
	case '{', '[':
	default:
		for i < len(value) && !endsScalar[value[i]] {
			i++
		}
		return i
	}
	depth := 0
	for i < len(value) {
		switch c := value[i]; {
		case !inContainer[c]:
			i++
		case c == '"':
			i += stringEnd(value[i:])
		case c == '{' || c == '[':
			depth++
			i++
		default:
			depth--
			i++
			if depth == 0 {
				return i
			}
		}
	}
	return i
}

// alignable bounds the work of finding which elements of two lists belong together.
const alignable = 1 << 18

// align says for each wanted element which one of have it is, or -1: the longest
// common sequence of elements of the same kind, which for objects is their type.
func align(have, want []json.RawMessage) (pairs []int, ok bool) {
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

func kinds(elements []json.RawMessage) []string {
	all := make([]string, len(elements))
	for i, e := range elements {
		all[i] = string(e[:1])
		if e[0] != '{' {
			continue
		}
		for _, m := range membersOf(e) {
			if string(m.name) == "type" {
				all[i] += string(m.value)
				break
			}
		}
	}
	return all
}
