package render

import "strings"

// unmarked is a block without the marks for the cache in it and in what it is made of.
func unmarked(raw string) string {
	if !strings.Contains(raw, cacheMark) && !strings.Contains(raw, `\u`) {
		return raw
	}
	return cutMembers(raw, cacheMark, true)
}

// cutMembers is a valid JSON text without the members of a name; every other byte stays. Deep, it
// looks into values, too, but not into the input of a tool, which is the model's, whatever its
// members are called.
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

// memberSpan is what to cut with a member from begins to ends: the comma before it, if that was
// not cut, or else the one after it.
func memberSpan(raw string, kept, begins, ends int) (from, to int) {
	if before := strings.TrimRight(raw[kept:begins], jsonSpace); strings.HasSuffix(before, ",") {
		return kept + len(before) - 1, ends
	}
	if after := strings.TrimLeft(raw[ends:], jsonSpace); strings.HasPrefix(after, ",") {
		ends = len(raw) - len(after) + 1
	}
	return begins, ends
}
