package ledger

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// arguments has only those arguments of a call that may name a command or a file, so that a huge object takes little
// memory.
type arguments map[string]json.RawMessage

// readArguments parses a call's arguments; false if they are neither a JSON object nor null.
func readArguments(written string) (arguments, bool) {
	var out arguments
	err := json.Unmarshal([]byte(written), &out)
	return out, err == nil
}

// UnmarshalJSON requires valid JSON. Of members with the same name, the last counts.
func (a *arguments) UnmarshalJSON(valid []byte) error {
	if string(valid) == "null" {
		return nil
	}
	var none struct{}
	if valid[0] != '{' {
		return json.Unmarshal(valid, &none)
	}
	*a = arguments{}
	for rest := skipSpace(valid[1:]); rest[0] != '}'; {
		name, value := cutValue(rest)
		value = skipSpace(skipSpace(value)[1:]) // after the colon
		value, rest = cutValue(value)
		if key := keyOf(name); namesCommand(key) || namesFile(key) {
			(*a)[key] = value
		}
		if rest = skipSpace(rest); rest[0] == ',' {
			rest = skipSpace(rest[1:])
		}
	}
	return nil
}

func keyOf(name []byte) (key string) {
	if bytes.IndexByte(name, '\\') < 0 && utf8.Valid(name) {
		return string(name[1 : len(name)-1])
	}
	_ = json.Unmarshal(name, &key) // cannot fail: name is a JSON string
	return key
}

func skipSpace(valid []byte) []byte {
	i := 0
	for i < len(valid) && strings.IndexByte(" \t\r\n", valid[i]) >= 0 {
		i++
	}
	return valid[i:]
}

// cutValue divides valid JSON after its first value.
func cutValue(valid []byte) (value, rest []byte) {
	depth, i := 0, 0
	for {
		switch c := valid[i]; {
		case c == '"':
			for i++; valid[i] != '"'; i++ {
				if valid[i] == '\\' {
					i++
				}
			}
			i++
		case c == '{' || c == '[':
			depth++
			i++
		case c == '}' || c == ']':
			depth--
			i++
		case strings.IndexByte(",: \t\r\n", c) >= 0:
			i++
		default:
			for i < len(valid) && strings.IndexByte(",]} \t\r\n", valid[i]) < 0 {
				i++
			}
		}
		if depth == 0 {
			return valid[:i], valid[i:]
		}
	}
}
