package rules

import (
	"bytes"
	"encoding/json"
)

// How deeply a line may be nested, with what the request around it takes: Anthropic's parser
// reads 200 levels, and Google's protocol buffers 100 messages, of which an object within
// another takes three.
const (
	anthropicDepth = 193
	geminiDepth    = 34
)

// decoded holds a line to what a provider reads that makes values of it: it is not too deeply
// nested, its numbers are near doubles, and, where names are to be there once, none is twice.
func (r *report) decoded(line int, raw []byte, deepest int, once bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var open []map[string]bool // the names of each object, nil for a list
	named := false             // a name was read, and its value is next
	for {
		token, err := d.Token()
		if err != nil {
			return // its end, or no JSON, which is another rule's
		}
		at := len(open) - 1
		if name, ok := token.(string); ok && !named && at >= 0 && open[at] != nil {
			if once && open[at][name] {
				r.add(line, "decoded", "%q twice", name)
			}
			open[at][name], named = true, true
			continue
		}
		named = false
		switch v := token.(type) {
		case json.Delim:
			switch v {
			case '{':
				open = append(open, map[string]bool{})
			case '[':
				open = append(open, nil)
			default:
				open = open[:at]
			}
			if len(open) > deepest {
				r.add(line, "decoded", "nested more than %d levels", deepest)
				return
			}
		case json.Number:
			if _, err := v.Float64(); err != nil {
				r.add(line, "decoded", "%.20s is near no double", v)
			}
		}
	}
}
