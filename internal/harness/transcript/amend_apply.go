package transcript

import (
	"encoding/json"
	"slices"
	"strconv"
)

func amendObject(base []byte, ops map[string]json.RawMessage, depth int) ([]byte, error) {
	members := membersOf(base)
	var del []string
	if raw, ok := ops["del"]; ok && Decode(raw, &del) != nil {
		return nil, unfit("del is no list of names")
	}
	for _, name := range del {
		if i := members.find([]byte(name), new(int)); i >= 0 {
			members = slices.Delete(members, i, i+1)
		}
	}
	for _, m := range membersOf(ops["in"]) {
		i := members.find(m.name, new(int))
		if i < 0 {
			return nil, unfit("there is no member %q", m.name)
		}
		value, err := amend(members[i].value, m.value, depth+1)
		if err != nil {
			return nil, err
		}
		members[i].value = value
	}
	for _, m := range membersOf(ops["set"]) {
		if i := members.find(m.name, new(int)); i >= 0 {
			members[i].value = m.value
		} else {
			members = append(members, m)
		}
	}
	var out object
	for _, m := range members {
		out.member(m.name, m.value)
	}
	if d := out.close('{', '}'); d != nil {
		return d, nil
	}
	return []byte("{}"), nil
}

func amendList(base []byte, ops map[string]json.RawMessage, depth int) ([]byte, error) {
	elements := elementsOf(base)
	var cut []int
	if raw, ok := ops["cut"]; ok && Decode(raw, &cut) != nil {
		return nil, unfit("cut is no list of positions")
	}
	slices.Sort(cut)
	for _, i := range slices.Backward(slices.Compact(cut)) {
		if i < 0 || i >= len(elements) {
			return nil, unfit("there is no element %d to cut", i)
		}
		elements = slices.Delete(elements, i, i+1)
	}
	put := membersOf(ops["put"])
	slices.SortStableFunc(put, func(a, b member) int { return position(string(a.name)) - position(string(b.name)) })
	for _, m := range put {
		i := position(string(m.name))
		if i < 0 || i > len(elements) {
			return nil, unfit("no element can be put at %q", m.name)
		}
		elements = slices.Insert(elements, i, m.value)
	}
	for _, m := range membersOf(ops["at"]) {
		i := position(string(m.name))
		if i < 0 || i >= len(elements) {
			return nil, unfit("there is no element %q", m.name)
		}
		value, err := amend(elements[i], m.value, depth+1)
		if err != nil {
			return nil, err
		}
		elements[i] = value
	}
	var out object
	for _, e := range elements {
		out.element(string(e))
	}
	if d := out.close('[', ']'); d != nil {
		return d, nil
	}
	return []byte("[]"), nil
}

// position reads an element's position; -1 is none.
func position(name string) int {
	i, err := strconv.Atoi(name)
	if err != nil || i < 0 || i > 1<<30 {
		return -1
	}
	return i
}

func amendText(base []byte, op json.RawMessage) ([]byte, error) {
	have, _ := Text(base)
	parts := elementsOf(op)
	if len(parts) != 4 {
		return nil, unfit("text has %d parts and not four", len(parts))
	}
	before, ok1 := Text(parts[0])
	behind, ok2 := Text(parts[3])
	from, to := position(string(parts[1])), position(string(parts[2]))
	if !ok1 || !ok2 || from < 0 || to < from || to > len(have) {
		return nil, unfit("text does not fit")
	}
	return []byte(quoted(before + have[from:to] + behind)), nil
}
