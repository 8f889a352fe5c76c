package render

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// decoder describes how a provider parses JSON in a request. Valid JSON that it cannot parse makes it refuse the
// request, and every later request of the session with it.
type decoder struct {
	// deepest is how deeply a value may be nested.
	deepest int
	// once is set where an object may not have two members of one name.
	once bool
}

var (
	// anthropicDecoder: the parser of Anthropic's SDK gives up at 200 levels, of which the request itself takes a few.
	anthropicDecoder = decoder{deepest: 190}
	// geminiDecoder: Google parses protocol buffers down to 100 messages, and each nested object takes three. No object
	// may have a name twice.
	geminiDecoder = decoder{deepest: 30, once: true}
)

// reads reports whether the provider can parse valid JSON. No provider parses a number beyond the range of a double.
func (d decoder) reads(raw string) bool {
	depth := 0
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '"':
			i = stringEnd(raw, i) - 1
		case c == '{' || c == '[':
			if depth++; depth > d.deepest {
				return false
			}
		case c == '}' || c == ']':
			depth--
		case '0' <= c && c <= '9':
			end := i + len(raw[i:]) - len(strings.TrimLeft(raw[i:], "0123456789.eE+-"))
			if !finite(raw[i:end]) {
				return false
			}
			i = end - 1
		}
	}
	return !d.once || !doubled(raw)
}

// finite reports whether a number is within the range of a double.
func finite(number string) bool {
	f, _ := strconv.ParseFloat(number, 64) // out of range it is infinite, and JSON's numbers are none else
	return !math.IsInf(f, 0)
}

// stringEnd is the end of the JSON string that begins at i, in valid JSON.
func stringEnd(raw string, i int) int {
	for i++; raw[i] != '"'; i++ {
		if raw[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// doubled reports whether an object in valid JSON has two members of one name.
func doubled(raw string) bool {
	var open []map[string]bool // the names of each object that is open; nil for a list
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '{':
			open = append(open, map[string]bool{})
		case '[':
			open = append(open, nil)
		case '}', ']':
			open = open[:len(open)-1]
		case '"':
			end := stringEnd(raw, i)
			if _, named := memberValue(raw, end); named {
				last := len(open) - 1
				name := memberName(raw[i:end])
				if open[last][name] {
					return true
				}
				open[last][name] = true
			}
			i = end - 1
		}
	}
	return false
}

// memberName decodes a JSON string.
func memberName(raw string) string {
	var name string
	if !strings.Contains(raw, `\`) || json.Unmarshal([]byte(raw), &name) != nil {
		return raw[1 : len(raw)-1]
	}
	return name
}
