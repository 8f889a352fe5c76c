package render

import "strings"

// escapeLen is the length of an escape such as \ud83d.
const escapeLen = len(`\ud83d`)

// wholePairs is a JSON text in which each escape of half a surrogate pair, which no
// character is, is \ufffd, and whether there was any. JSON's grammar has such halves, and a
// model or a harness that cuts texts by UTF-16 writes them; but Anthropic refuses a request
// with one, and every later request of the session with it.
func wholePairs(raw string) (string, bool) {
	var out strings.Builder
	start := 0
	for i := 0; i < len(raw); i++ {
		next := strings.IndexByte(raw[i:], '\\')
		if next < 0 {
			break
		}
		i += next
		switch {
		case !surrogate(raw[i:]):
			i++ // what is escaped, which may be another backslash
		case leads(raw[i:]) && surrogate(raw[i+escapeLen:]) && !leads(raw[i+escapeLen:]):
			i += 2*escapeLen - 1
		default:
			out.WriteString(raw[start:i])
			out.WriteString(`\ufffd`)
			start = i + escapeLen
			i = start - 1
		}
	}
	if start == 0 {
		return raw, false
	}
	out.WriteString(raw[start:])
	return out.String(), true
}

// surrogate reports whether s begins with an escape of \ud800 to \udfff.
func surrogate(s string) bool {
	return len(s) >= escapeLen && s[0] == '\\' && s[1] == 'u' && s[2]|0x20 == 'd' && strings.IndexByte("89abcdefABCDEF", s[3]) >= 0
}

// leads reports whether an escape of a surrogate is of the first of a pair.
func leads(s string) bool { return strings.IndexByte("89abAB", s[3]) >= 0 }
