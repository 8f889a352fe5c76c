package bpe

// splitO200K matches the pattern of o200k_base:
//
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	|\p{N}{1,3}
//	| ?[^\s\p{L}\p{N}]+[\r\n/]*
//	|\s*[\r\n]+|\s+(?!\S)|\s+
func splitO200K(t *classTable, s string, p int) int {
	c, n := t.at(s, p)
	q := p + n
	switch {
	case c&letter != 0:
		end, _ := skipWord(t, s, p)
		return skipContraction(s, end)
	case c&number != 0:
		return skipNumber(t, s, p)
	case c == newline:
		return skipSpace(t, s, p)
	}
	if q < len(s) {
		next, n := t.at(s, q)
		if next&word != 0 {
			end, lowered := skipWord(t, s, q)
			if !lowered && c == mark {
				// The first alternative matches the mark alone, and comes
				// before the second with the mark as its prefix.
				return q
			}
			return skipContraction(s, end)
		}
		if s[p] == ' ' && next&notSymbol == 0 {
			return skipSlashes(s, skipSymbols(t, s, q+n))
		}
	}
	switch c {
	case mark:
		return skipContraction(s, q)
	case space:
		return skipSpace(t, s, p)
	}
	return skipSlashes(s, skipSymbols(t, s, q))
}

// skipWord matches the letters of the first two alternatives where a letter or a
// mark is at p. The first wants its last character to be no capital:
// lowered says that it matched. It gives capitals back to find one, so that it
// ends after the last letter without case, or mark, of the leading run if no
// small letter follows that run.
func skipWord(t *classTable, s string, p int) (end int, lowered bool) {
	for end = p; end < len(s); {
		c, n := t.at(s, end)
		switch {
		case c == lower:
			return t.skip(s, end+n, lower|caseless|mark), true
		case c&(caseless|mark) != 0:
			p, lowered = end+n, true
		case c != upper:
			if lowered {
				return p, true
			}
			return end, false
		}
		end += n
	}
	if lowered {
		return p, true
	}
	return end, false
}

// skipSlashes is [\r\n/]*.
func skipSlashes(s string, p int) int {
	for p < len(s) && (s[p] == '\n' || s[p] == '\r' || s[p] == '/') {
		p++
	}
	return p
}
