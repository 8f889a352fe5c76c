package render

import (
	"encoding/json"
	"strings"
)

// unmarked is a block without the marks for the cache in it and in what it is made of.
func unmarked(raw string) string {
	if !strings.Contains(raw, cacheMark) && !strings.Contains(raw, `\u`) {
		return raw
	}
	out, _ := cutMembers(raw, cacheMark, true)
	return out
}

// cutMembers is a JSON text without the members of a name, and whether there were any: without,
// it is as it came. Deep, it looks into values, too, but not into the input of a tool, which is
// the model's, whatever its members are called.
func cutMembers(raw, unwanted string, deep bool) (string, bool) {
	d := json.NewDecoder(strings.NewReader(raw))
	open, err := d.Token()
	delim, ok := open.(json.Delim)
	if err != nil || !ok {
		return raw, false
	}
	out, cut := []byte{byte(delim)}, false
	for d.More() {
		var name string
		if delim == '{' {
			token, err := d.Token()
			if name, ok = token.(string); err != nil || !ok {
				return raw, false
			}
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return raw, false
		}
		if delim == '{' && name == unwanted {
			cut = true
			continue
		}
		text, inside := string(value), false
		if deep && name != "input" {
			text, inside = cutMembers(text, unwanted, deep)
		}
		cut = cut || inside
		if len(out) > 1 {
			out = append(out, ',')
		}
		if delim == '{' {
			out = append(appendString(out, name), ':')
		}
		out = append(out, text...)
	}
	if !cut {
		return raw, false
	}
	return string(append(out, byte(delim)+2)), true // as '{' and '}', '[' and ']' are
}
