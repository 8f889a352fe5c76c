package bpe

// A splitter finds where the piece that begins at s[p] ends: the match of the
// encoding's split pattern at p. It needs p < len(s), returns more than p, and
// takes time linear in what it returns, over a whole text linear in the text.
type splitter func(t *classTable, s string, p int) int

// skipSymbols is [^\s\p{L}\p{N}]*.
func skipSymbols(t *classTable, s string, p int) int {
	for p < len(s) {
		c, n := t.at(s, p)
		if c&notSymbol != 0 {
			break
		}
		p += n
	}
	return p
}

// skipNumber is \p{N}{1,3}, where the first is known to be at p.
func skipNumber(t *classTable, s string, p int) int {
	for range 3 {
		if p == len(s) {
			break
		}
		c, n := t.at(s, p)
		if c&number == 0 {
			break
		}
		p += n
	}
	return p
}

// skipSpace is \s*[\r\n]+|\s+(?!\S)|\s+ where a whitespace character is at p:
// up to the last line break of the run; without one, all of it but for its last
// character, which stays for the next piece if that has something to begin with.
func skipSpace(t *classTable, s string, p int) int {
	afterBreak, last, end := 0, p, p
	for end < len(s) {
		c, n := t.at(s, end)
		if c&whitespace == 0 {
			break
		}
		last = end
		end += n
		if c == newline {
			afterBreak = end
		}
	}
	switch {
	case afterBreak > 0:
		return afterBreak
	case end == len(s) || last == p:
		return end
	default:
		return last
	}
}

// skipContraction is (?i:'s|'t|'re|'ve|'m|'ll|'d)?. Under (?i) the long s (U+017F)
// is an s too; no other letter outside ASCII folds to one of these.
func skipContraction(s string, p int) int {
	if p+1 >= len(s) || s[p] != '\'' {
		return p
	}
	switch s[p+1] | 0x20 {
	case 's', 't', 'm', 'd':
		return p + 2
	case 'r', 'v':
		if p+2 < len(s) && s[p+2]|0x20 == 'e' {
			return p + 3
		}
	case 'l':
		if p+2 < len(s) && s[p+2]|0x20 == 'l' {
			return p + 3
		}
	case 0xc5 | 0x20:
		if p+2 < len(s) && s[p+1] == 0xc5 && s[p+2] == 0xbf {
			return p + 3
		}
	}
	return p
}
