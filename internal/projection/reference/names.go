// Package reference finds the names in texts by which one text may refer to another.
//
// A name is one of these: a path or URL, a::b, #12, a git id, a UUID, name.ext, snake_case, mixedCase, an
// abbreviation such as SQLDB, a long number, an issue with its number, or the value of a field that has an id, a
// path, a symbol or a reference. Names are compared exactly and as a whole: src/a.go does not name src/a.gold, nor
// issue 12 issue 2.
package reference

import "strings"

// EachName calls yield for the names in text, in order, with repeats. The names of JSON members do not count. The
// yielded strings share text's memory if possible.
func EachName(text string, yield func(string)) {
	previous := ""
	for i := 0; i < len(text); {
		if nameClass(text[i]) == 0 {
			i++
			continue
		}
		start := i
		if i = runEnd(text, i); i == start {
			i++
			continue
		}
		run := text[start:i]
		if isKey(text, start, i) {
			continue
		}
		if numbered(run, previous) {
			yield("#" + strings.TrimRight(run, ".:-"))
		}
		eachInRun(run, yield)
		previous = run
	}
}

const (
	wordByte = 1 << iota
	lowerByte
	upperByte
	digitByte
	joinByte
)

var nameClasses = func() (c [256]uint8) {
	for b := 'a'; b <= 'z'; b++ {
		c[b] = wordByte | lowerByte
	}
	for b := 'A'; b <= 'Z'; b++ {
		c[b] = wordByte | upperByte
	}
	for b := '0'; b <= '9'; b++ {
		c[b] = wordByte | digitByte
	}
	c['_'] = wordByte
	for _, b := range "./:#-@~" {
		c[b] = joinByte
	}
	// Latin, Greek and Cyrillic letters may be in names. Others may not, because some scripts have no spaces around
	// words.
	for b := firstLetter; b <= lastLetter; b++ {
		c[b] = wordByte
	}
	return c
}()

// The bytes that begin a letter of two bytes.
const firstLetter, lastLetter = 0xc3, 0xd3

// runEnd returns where the run that begins at i ends.
func runEnd(text string, i int) int {
	for i < len(text) && nameClass(text[i]) != 0 {
		n := letterBytes(text, i)
		if n == 0 {
			break
		}
		i += n
	}
	return i
}

// letterBytes returns how many bytes the character at i takes; 0 if it is cut off.
func letterBytes(text string, i int) int {
	switch {
	case text[i] < firstLetter:
		return 1
	case i+1 < len(text) && text[i+1]&0xc0 == 0x80:
		return 2
	default:
		return 0
	}
}

func nameClass(b byte) uint8 { return nameClasses[b] }

// isKey reports whether text[start:end] is the name of a member in JSON.
func isKey(text string, start, end int) bool {
	if start == 0 || text[start-1] != '"' || end >= len(text) || text[end] != '"' {
		return false
	}
	rest := strings.TrimLeft(text[end+1:min(len(text), end+8)], " \t\r\n")
	return strings.HasPrefix(rest, ":") && !strings.HasPrefix(rest, "::")
}

// numbered reports whether run is a number and the word before it says of what, as in "issue 12".
func numbered(run, previous string) bool {
	run = strings.TrimRight(run, ".:-")
	if run == "" || len(run) > 9 {
		return false
	}
	for i := range len(run) {
		if nameClass(run[i])&digitByte == 0 {
			return false
		}
	}
	switch strings.ToLower(previous) {
	case "issue", "issues", "pr", "pull", "request", "ticket", "bug", "finding", "task":
		return true
	}
	return false
}

// eachInRun yields the names in a run of letters, digits and the characters that join them.
func eachInRun(run string, yield func(string)) {
	if strings.Contains(run, "://") {
		if url := strings.TrimRight(run, "./:#-"); len(url) > 8 {
			yield(url)
		}
		return
	}
	for run != "" {
		piece := run
		if at := singleColon(run); at >= 0 {
			piece, run = run[:at], run[at+1:]
		} else {
			run = ""
		}
		eachInPiece(piece, yield)
	}
}

// singleColon returns the index of the first colon that is not part of "::", or -1.
func singleColon(s string) int {
	for i := 0; i < len(s); i++ {
		if s[i] != ':' {
			continue
		}
		if i+1 < len(s) && s[i+1] == ':' {
			i++
			continue
		}
		return i
	}
	return -1
}

// eachInPiece yields a piece, which has no single colon, if it is a name, and also the reference after its number
// sign.
func eachInPiece(piece string, yield func(string)) {
	if at := strings.IndexByte(piece, '#'); at >= 0 {
		if ref := strings.TrimRight(piece[at:], "./:#-@~"); hasDigit(ref) && strings.Count(ref, "#") == 1 {
			yield(ref)
			if whole := trimName(piece[:at] + ref); at > 0 && strings.Contains(whole, "/") {
				yield(whole)
			}
		}
		piece = piece[:at]
	}
	if name := trimName(piece); isName(name) {
		yield(name)
	}
}

// trimName removes punctuation at both ends. A path keeps its beginning, such as "/" or "../", but not "./", which
// says nothing.
func trimName(s string) string {
	s = strings.TrimRight(s, "./:#-@~")
	s = strings.TrimLeft(s, ":#-")
	for strings.HasPrefix(s, "./") {
		s = s[2:]
	}
	if dots := len(s) - len(strings.TrimLeft(s, ".")); dots >= 3 {
		s = s[dots:] // an ellipsis
	}
	return s
}

func hasDigit(s string) bool { return strings.ContainsAny(s, "0123456789") }
