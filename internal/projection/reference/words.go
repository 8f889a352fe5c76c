package reference

import "strings"

// EachReference yields everything by which a text may refer to a result: names, plain words that a result's field may
// have, lines and quotations.
func EachReference(text string, yield func(string)) {
	EachName(text, yield)
	EachField(text, yield)
	EachLine(text, yield)
	eachQuotation(text, yield)
	eachWord(text, yield)
}

// eachWord yields plain words.
func eachWord(text string, yield func(string)) {
	for i := 0; i < len(text); {
		if nameClass(text[i])&wordByte == 0 {
			i++
			continue
		}
		start := i
		for i < len(text) && (nameClass(text[i])&wordByte != 0 || text[i] == '-') {
			n := letterBytes(text, i)
			if n == 0 {
				break
			}
			i += n
		}
		if i-start >= 3 && !structural[text[start:i]] {
			yield(text[start:i])
		}
		i = max(i, start+1)
	}
}

var escapes = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\r`, "\r", `\"`, `"`, `\/`, "/", `\\`, `\`)

// Unescaped returns JSON with the escapes in its strings decoded.
func Unescaped(arguments string) string {
	if strings.IndexByte(arguments, '\\') < 0 {
		return arguments
	}
	return escapes.Replace(arguments)
}

// HoldsPhrase reports whether text has the words with no letter, digit or
// underscore on either side.
func HoldsPhrase(text, words string) bool {
	for from := 0; ; {
		at := strings.Index(text[from:], words)
		if at < 0 {
			return false
		}
		start := from + at
		end := start + len(words)
		if (start == 0 || nameClass(text[start-1])&wordByte == 0) && (end == len(text) || nameClass(text[end])&wordByte == 0) {
			return true
		}
		from = start + 1
	}
}
