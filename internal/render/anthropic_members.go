package render

import "strings"

// unmarked is a block without the marks for the cache in it and in what it is made of.
func unmarked(raw string) string {
	if !strings.Contains(raw, cacheMark) && !strings.Contains(raw, `\u`) {
		return raw
	}
	return cutMembers(raw, cacheMark, true)
}

// cutMembers removes the members of a name from a valid JSON text and changes no other byte. With deep it looks into
// values, except into a tool's input, which is the model's own.
func cutMembers(raw, unwanted string, deep bool) string {
	var out strings.Builder
	kept := 0             // so much of the text was looked through, and is in out or was cut
	depth, input := 0, -1 // input is how deep the tool's input is that i is in
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < input {
				input = -1
			}
		case '"':
			end := stringEnd(raw, i)
			value, named := memberValue(raw, end)
			switch name := raw[i:end]; {
			case !named || input >= 0 && depth >= input:
			case memberName(name) == "input":
				if raw[value] == '{' {
					input = depth + 1
				}
			case memberName(name) == unwanted && (deep || depth == 1):
				from, to := memberSpan(raw, kept, i, valueEnd(raw, value))
				out.WriteString(raw[kept:from])
				kept, end = to, to
			}
			i = end - 1
		}
	}
	if kept == 0 {
		return raw
	}
	out.WriteString(raw[kept:])
	return out.String()
}

const jsonSpace = " \t\r\n"

// memberValue is where the value begins of a member whose name ends at i; false for a string that
// is no name.
func memberValue(raw string, i int) (int, bool) {
	rest := strings.TrimLeft(raw[i:], jsonSpace)
	if !strings.HasPrefix(rest, ":") {
		return 0, false
	}
	return len(raw) - len(strings.TrimLeft(rest[1:], jsonSpace)), true
}

// valueEnd is where the value ends that begins at i.
func valueEnd(raw string, i int) int {
	depth := 0
	for ; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			i = stringEnd(raw, i) - 1
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
		default:
			if depth > 0 || i+1 < len(raw) && !strings.ContainsRune(",]}"+jsonSpace, rune(raw[i+1])) {
				continue
			}
		}
		if depth == 0 {
			return i + 1
		}
	}
	return i
}

// memberSpan is the span to cut for the member at begins..ends: with the comma before it or, if that is gone, the one
// after.
func memberSpan(raw string, kept, begins, ends int) (from, to int) {
	if before := strings.TrimRight(raw[kept:begins], jsonSpace); strings.HasSuffix(before, ",") {
		return kept + len(before) - 1, ends
	}
	if after := strings.TrimLeft(raw[ends:], jsonSpace); strings.HasPrefix(after, ",") {
		ends = len(raw) - len(after) + 1
	}
	return begins, ends
}
