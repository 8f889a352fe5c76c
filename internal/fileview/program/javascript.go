package program

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/contextd/contextd/internal/fileview/fileop"
)

// jsWrites are functions by which a JavaScript program may change a file.
var jsWrites = regexp.MustCompile(`^(?:(?:writeFile|appendFile|rename|unlink|rm|copyFile|cp|truncate)(?:Sync)?|createWriteStream|writeTextFile|(?:exec|spawn|execFile)(?:Sync)?)$`)

// JavaScript returns the changes that a JavaScript program makes to files: if it changes any, all files that it
// names count as changed.
func JavaScript(text string) []fileop.Operation {
	tokens := scanJavaScript(text)
	for i, t := range tokens {
		called := i+1 < len(tokens) && tokens[i+1].text == "("
		if t.kind == word && called && (jsWrites.MatchString(t.text) || t.text == "write" && i > 1 && tokens[i-2].text == "Bun") {
			return fileop.Changes(fileNames(tokens))
		}
	}
	return nil
}

// fileNames returns the literals of a program that may be names of files.
func fileNames(tokens []token) []string {
	const longest = 256 // bytes
	var out []string
	for _, t := range tokens {
		if t.kind == literal && len(t.text) <= longest && strings.ContainsAny(t.text, "./") && !strings.ContainsAny(t.text, " \t\r\n*?[{(<>=,\"'\\"+UnknownPart) && !strings.HasPrefix(t.text, "-") && !strings.Contains(t.text, "://") && strings.Trim(t.text, "./") != "" {
			out = append(out, t.text)
		}
	}
	return out
}

type tokenKind uint8

// The kinds of tokens of a program.
const (
	unknown     tokenKind = iota
	literal               // a text
	word                  // a name, a keyword or a number
	punctuation           // one character
	lineBreak             // between statements in Python; its text is the blanks before the next one
)

type token struct {
	kind tokenKind
	text string
}

// cursor is a place in a program.
type cursor struct {
	tokens []token
	at     int
}

// is reports whether a token is the given punctuation.
func (c *cursor) is(at int, mark string) bool {
	return c.kind(at) == punctuation && c.tokens[at].text == mark
}

func (c *cursor) kind(at int) tokenKind {
	if at >= 0 && at < len(c.tokens) {
		return c.tokens[at].kind
	}
	return unknown
}

// scanJavaScript returns the tokens of a JavaScript program, without comments. It goes over the text once; an
// unclosed literal hides the rest of its line, and an unclosed template the rest of the program.
func scanJavaScript(text string) []token {
	s := scanner{text: text}
	for s.at < len(text) {
		s.next()
	}
	return s.tokens
}

type scanner struct {
	text   string
	at     int
	tokens []token
}

func (s *scanner) add(kind tokenKind, text string) {
	s.tokens = append(s.tokens, token{kind, text})
}

// last returns the text of the last token; empty if that is a literal.
func (s *scanner) last() string {
	if n := len(s.tokens); n > 0 && s.tokens[n-1].kind != literal {
		return s.tokens[n-1].text
	}
	return ""
}

func isWord(c byte) bool {
	return c == '_' || c == '$' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf
}

func (s *scanner) next() {
	rest := s.text[s.at:]
	switch c := rest[0]; {
	case c == ' ' || c == '\t' || c == '\n' || c == '\r':
		s.at++
	case strings.HasPrefix(rest, "//"):
		s.skipTo("\n")
	case strings.HasPrefix(rest, "/*"):
		s.skipTo("*/")
	case c == '"' || c == '\'':
		s.quoted(c)
	case c == '`':
		s.template()
	case c == '/' && s.beforeValue():
		s.regex()
	case isWord(c):
		n := 1
		for n < len(rest) && isWord(rest[n]) {
			n++
		}
		s.add(word, rest[:n])
		s.at += n
	default:
		s.add(punctuation, rest[:1])
		s.at++
	}
}

// skipTo skips the next of these texts, or everything if there is none.
func (s *scanner) skipTo(end string) {
	if n := strings.Index(s.text[s.at:], end); n >= 0 {
		s.at += n + len(end)
	} else {
		s.at = len(s.text)
	}
}

// beforeValue reports whether a value comes next, and not an operator.
func (s *scanner) beforeValue() bool {
	if len(s.tokens) == 0 {
		return true
	}
	last := s.tokens[len(s.tokens)-1]
	return last.kind == punctuation && last.text != ")" && last.text != "]" && last.text != "}" || last.kind == word && last.text == "return"
}

// quoted reads a text between quotes.
func (s *scanner) quoted(quote byte) {
	for i := s.at + 1; i < len(s.text); i++ {
		switch s.text[i] {
		case '\\':
			i++
		case '\n':
			s.add(unknown, "")
			s.at = i
			return
		case quote:
			s.add(literal, Unescape(s.text[s.at+1:i]))
			s.at = i + 1
			return
		}
	}
	s.add(unknown, "")
	s.at = len(s.text)
}

// template reads a text between backticks, as a sum of its parts in brackets.
func (s *scanner) template() {
	raw := s.last() == "raw"
	take := func(text string) {
		if !raw {
			text = Unescape(text)
		}
		s.add(literal, text)
	}
	begin, from := len(s.tokens), s.at+1
	for i := from; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '\\':
			i++
		case c == '`':
			take(s.text[from:i])
			if len(s.tokens)-begin > 1 {
				s.tokens = slices.Insert(s.tokens, begin, token{punctuation, "("})
				s.add(punctuation, ")")
			}
			s.at = i + 1
			return
		case c == '$' && strings.HasPrefix(s.text[i:], "${"):
			take(s.text[from:i])
			end := i + 2
			for end < len(s.text) && isWord(s.text[end]) {
				end++
			}
			s.add(punctuation, "+")
			if end < len(s.text) && s.text[end] == '}' && end > i+2 {
				s.add(word, s.text[i+2:end])
			} else {
				s.add(unknown, "")
				end = s.hole(end)
			}
			s.add(punctuation, "+")
			i, from = end, end+1
		}
	}
	s.tokens = s.tokens[:begin]
	s.add(unknown, "")
	s.at = len(s.text)
}

// hole returns where the expression in a template ends, going by brackets and quotes.
func (s *scanner) hole(at int) int {
	depth := 0
	var quote byte
	for ; at < len(s.text); at++ {
		switch c := s.text[at]; {
		case c == '\\':
			at++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'' || c == '`':
			quote = c
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth < 0 {
				return at
			}
		}
	}
	return len(s.text)
}

// regex reads a regular expression, which may contain quotes.
func (s *scanner) regex() {
	class := false
	for i := s.at + 1; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '\\':
			i++
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '/' && !class, c == '\n':
			s.add(unknown, "")
			s.at = i + 1
			return
		}
	}
	s.add(unknown, "")
	s.at = len(s.text)
}

// Unescape returns the text of a literal.
func Unescape(text string) string {
	at := strings.IndexByte(text, '\\')
	if at < 0 {
		return text
	}
	var out strings.Builder
	for ; at >= 0 && at+1 < len(text); at = strings.IndexByte(text, '\\') {
		out.WriteString(text[:at])
		c := text[at+1]
		text = text[at+2:]
		if short := strings.IndexByte("nrtbfv0", c); short >= 0 {
			out.WriteByte("\n\r\t\b\f\v\x00"[short])
			continue
		}
		switch c {
		case '\n': // the line goes on
		case 'x':
			text = codePoint(&out, text, 2)
		case 'u':
			if rest, ok := strings.CutPrefix(text, "{"); ok {
				digits, after, _ := strings.Cut(rest[:min(len(rest), 8)], "}")
				codePoint(&out, digits, len(digits))
				text = rest[min(len(rest), 8)-len(after):]
				continue
			}
			text = codePoint(&out, text, 4)
		default:
			out.WriteByte(c)
		}
	}
	out.WriteString(text)
	return out.String()
}

// codePoint writes the character of so many digits, or of two of which the second completes the
// first, and returns what comes after.
func codePoint(out *strings.Builder, text string, digits int) string {
	n, ok := hex(text, digits)
	if !ok {
		return text
	}
	text = text[digits:]
	if utf16.IsSurrogate(n) && strings.HasPrefix(text, `\u`) {
		if second, ok := hex(text[2:], 4); ok {
			n = utf16.DecodeRune(n, second)
			text = text[6:]
		}
	}
	out.WriteRune(n)
	return text
}

func hex(text string, digits int) (rune, bool) {
	if len(text) < digits || digits == 0 {
		return 0, false
	}
	n, err := strconv.ParseUint(text[:digits], 16, 32)
	return rune(n), err == nil && n <= utf8.MaxRune
}
