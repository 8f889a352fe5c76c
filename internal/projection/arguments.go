package projection

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// members calls yield for each member of a JSON object, sorted by name, with its value compacted. If the
// JSON is truncated, it yields the members before that point.
func members(object string, yield func(name string, value json.RawMessage)) {
	decoder := json.NewDecoder(strings.NewReader(object))
	if t, err := decoder.Token(); err != nil || t != json.Delim('{') {
		return
	}
	type member struct {
		name  string
		value json.RawMessage
	}
	var all []member
	for decoder.More() {
		t, err := decoder.Token()
		name, ok := t.(string)
		var value json.RawMessage
		if err != nil || !ok || decoder.Decode(&value) != nil {
			break
		}
		all = append(all, member{name, value})
	}
	slices.SortStableFunc(all, func(a, b member) int { return strings.Compare(a.name, b.name) })
	for _, m := range all {
		yield(m.name, json.RawMessage(compacted(string(m.value))))
	}
}

// compacted returns JSON without whitespace between its tokens. Other text is only trimmed.
func compacted(text string) string {
	var out bytes.Buffer
	if json.Compact(&out, []byte(text)) != nil {
		return strings.TrimSpace(text)
	}
	return out.String()
}
