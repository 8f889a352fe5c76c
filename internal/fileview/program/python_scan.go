package program

import "strings"

// scanPython returns the tokens of a Python program, without comments. It goes over the text once; an unclosed
// literal hides the rest of its line, or of the program.
func scanPython(text string) []token {
	s := pythonScanner{scanner: scanner{text: text}}
	s.line()
	for s.at < len(text) {
		s.next()
	}
	return s.tokens
}

type pythonScanner struct {
	scanner
	indent string
	depth  int // of brackets
}

// line begins a statement on a line of its own.
func (s *pythonScanner) line() {
	rest := s.text[s.at:]
	s.indent = rest[:len(rest)-len(strings.TrimLeft(rest, " \t"))]
	s.at += len(s.indent)
	s.add(lineBreak, s.indent)
}

func (s *pythonScanner) next() {
	rest := s.text[s.at:]
	switch c := rest[0]; {
	case c == '\n' && s.depth == 0:
		s.at++
		s.line()
	case c == '\\' && strings.HasPrefix(rest, "\\\n"):
		s.at += 2
	case c == ' ' || c == '\t' || c == '\n' || c == '\r':
		s.at++
	case c == '#':
		if n := strings.IndexByte(rest, '\n'); n >= 0 {
			s.at += n
		} else {
			s.at = len(s.text)
		}
	case c == ';' && s.depth == 0:
		s.at++
		s.add(lineBreak, s.indent+" ") // in the block that may begin on the same line
	case c == '"' || c == '\'':
		s.quoted("")
	case isWord(c):
		n := 1
		for n < len(rest) && isWord(rest[n]) {
			n++
		}
		s.at += n
		if n < len(rest) && n <= 2 && (rest[n] == '"' || rest[n] == '\'') && strings.Trim(rest[:n], "rRbBuUfF") == "" {
			s.quoted(strings.ToLower(rest[:n]))
			return
		}
		s.add(word, rest[:n])
	default:
		if strings.IndexByte("([{", c) >= 0 {
			s.depth++
		} else if strings.IndexByte(")]}", c) >= 0 {
			s.depth = max(s.depth-1, 0)
		}
		s.add(punctuation, rest[:1])
		s.at++
	}
}

// quoted reads a text between quotes, with the prefix that says how to read it.
func (s *pythonScanner) quoted(prefix string) {
	quote := s.text[s.at : s.at+1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(s.text[s.at:], triple) {
		quote = triple
	}
	s.at += len(quote)
	from := s.at
	for ; s.at < len(s.text); s.at++ {
		switch rest := s.text[s.at:]; {
		case rest[0] == '\\':
			s.at++
		case rest[0] == '\n' && len(quote) == 1:
			s.add(unknown, "")
			return
		case strings.HasPrefix(rest, quote):
			s.take(prefix, s.text[from:s.at])
			s.at += len(quote)
			return
		}
	}
	s.at = len(s.text)
	s.add(unknown, "")
}

// take adds the literal of a text as it is between its quotes.
func (s *pythonScanner) take(prefix, text string) {
	ok := true
	if strings.Contains(prefix, "f") && strings.ContainsAny(text, "{}") {
		ok = false
	} else if !strings.Contains(prefix, "r") {
		text, ok = unescapePython(text, strings.Contains(prefix, "b"))
	}
	if !ok {
		s.add(unknown, "")
		return
	}
	s.add(literal, text)
}

// unescapePython returns the text of a literal. Python keeps a backslash before most characters. Bytes that are
// written as numbers may be no characters.
func unescapePython(text string, bytes bool) (string, bool) {
	if !strings.Contains(text, `\`) {
		return text, true
	}
	var doubled strings.Builder
	for i := 0; i < len(text); i++ {
		doubled.WriteByte(text[i])
		if text[i] != '\\' || i+1 == len(text) {
			continue
		}
		i++
		switch c := text[i]; {
		case bytes && (c == 'x' || c == 'u'), strings.IndexByte("aNU123456789", c) >= 0, c == '0' && i+1 < len(text) && text[i+1] >= '0' && text[i+1] <= '9':
			return "", false
		case strings.IndexByte("\n\\'\"nrtbfv0xu", c) < 0:
			doubled.WriteByte('\\')
		}
		doubled.WriteByte(text[i])
	}
	return Unescape(doubled.String()), true
}
