package bpe

// splitCL100K matches the pattern of cl100k_base:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)
//	|[^\r\n\p{L}\p{N}]?\p{L}+
//	|\p{N}{1,3}
//	| ?[^\s\p{L}\p{N}]+[\r\n]*
//	|\s*[\r\n]+|\s+(?!\S)|\s+
//
// The form in newer releases of tiktoken, with possessive quantifiers and \s++$
// in front of the last line, cuts trailing whitespace in other places but yields
// the same tokens: no token holds whitespace on both sides of those cuts.
func splitCL100K(t *classTable, s string, p int) int {
	c, n := t.at(s, p)
	q := p + n
	switch {
	case c&letter != 0:
		return t.skip(s, q, letter)
	case c&number != 0:
		return skipNumber(t, s, p)
	case c == newline:
		return skipSpace(t, s, p)
	}
	if s[p] == '\'' {
		if end := skipContraction(s, p); end > p {
			return end
		}
	}
	if q < len(s) {
		next, n := t.at(s, q)
		if next&letter != 0 {
			return t.skip(s, q+n, letter)
		}
		if s[p] == ' ' && next&notSymbol == 0 {
			return t.skip(s, skipSymbols(t, s, q+n), newline)
		}
	}
	if c == space {
		return skipSpace(t, s, p)
	}
	return t.skip(s, skipSymbols(t, s, q), newline)
}
