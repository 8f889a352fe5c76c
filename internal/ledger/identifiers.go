package ledger

import "strings"

// MinIdentifier is the length in bytes below which a word is no identifier.
const MinIdentifier = 6

// Identifiers calls yield for every exact name in text, in order: a path, symbol, id, URL or number that an agent
// must repeat exactly. That is a run of ASCII letters, digits and _./:#- of at least MinIdentifier bytes. It has a
// letter or digit and, besides, one of these: a separator after that or at its beginning, a change from lower to
// upper case, or three digits. Punctuation at its ends is not part of it, except for underscores and a leading / or
// dot; an ellipsis before a word is punctuation. yield returns false to stop.
func Identifiers(text string, yield func(start, end int) bool) {
	for i := 0; i < len(text); {
		if classes[text[i]] == 0 {
			i++
			continue
		}
		start := i
		for i < len(text) && classes[text[i]] != 0 {
			i++
		}
		from, to := trim(text, start, i)
		if to-from >= MinIdentifier && exact(text[from:to]) && !yield(from, to) {
			return
		}
	}
}

const (
	lower = 1 << iota
	upper
	digit
	separator
)

var classes = func() (c [256]uint8) {
	for b := 'a'; b <= 'z'; b++ {
		c[b] = lower
	}
	for b := 'A'; b <= 'Z'; b++ {
		c[b] = upper
	}
	for b := '0'; b <= '9'; b++ {
		c[b] = digit
	}
	for _, b := range "_./:#-" {
		c[b] = separator
	}
	return c
}()

func trim(text string, start, end int) (int, int) {
	for end > start && classes[text[end-1]] == separator && text[end-1] != '_' {
		end--
	}
	if start < end && classes[text[start]] != separator {
		return start, end
	}
	for start < end {
		word := text[start:end]
		rest := strings.TrimLeft(word, ".")
		dots := len(word) - len(rest)
		switch {
		case dots >= 3 && rest != "" && rest[0] != '/':
			start += dots
		case strings.IndexByte(":#-", word[0]) >= 0:
			start++
		default:
			return start, end
		}
	}
	return start, end
}

// exact reports whether a word is a name and not prose.
func exact(word string) bool {
	digits := 0
	alnumBefore := false
	var previous uint8
	for i := range len(word) {
		class := classes[word[i]]
		switch {
		case class == digit:
			if digits++; digits == 3 {
				return true
			}
		case class == upper && previous == lower:
			return true
		case class == separator:
			if alnumBefore {
				return true
			}
		}
		if class != separator {
			alnumBefore = true
		}
		previous = class
	}
	return alnumBefore && classes[word[0]] == separator
}
