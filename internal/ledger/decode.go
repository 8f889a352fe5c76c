package ledger

import (
	"encoding/json"
	"slices"
	"strings"
)

// Decode returns the texts in a JSON value, each on a line, so that no escape is mistaken for a part of a name. The
// members of an object are sorted by name, and each name comes before its value. A text that is no JSON object or
// array is returned unchanged.
func Decode(text string) string {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" || trimmed[0] != '{' && trimmed[0] != '[' {
		return text
	}
	decoder := json.NewDecoder(strings.NewReader(trimmed))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil || decoder.More() {
		return text
	}
	var out strings.Builder
	out.Grow(len(trimmed))
	writeTexts(&out, value)
	return strings.TrimSuffix(out.String(), "\n")
}

func writeTexts(out *strings.Builder, value any) {
	switch v := value.(type) {
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			out.WriteString(name)
			out.WriteByte('\n')
			writeTexts(out, v[name])
		}
	case []any:
		for _, item := range v {
			writeTexts(out, item)
		}
	case string:
		out.WriteString(v)
		out.WriteByte('\n')
	case json.Number:
		out.WriteString(v.String())
		out.WriteByte('\n')
	}
}
