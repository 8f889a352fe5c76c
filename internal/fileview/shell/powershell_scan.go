package shell

import (
	"strings"
	"unicode/utf8"
)

// psWord is a word of a script for PowerShell.
type psWord struct {
	text string
	kind psKind
}

type psKind uint8

// The kinds of words of a script for PowerShell.
const (
	psBare     psKind = iota
	psText            // between quotes, to the letter
	psVariable        // its name
	psGroup           // in brackets, with them
	psOther           // a text into which something is put
)

// psPipeline is a list of commands, each of which reads the output of the one before.
type psPipeline struct {
	assigns  string // the variable that gets what they show
	commands [][]psWord
}

// psScanner splits a PowerShell script into commands, in one pass.
type psScanner struct {
	text    string
	at      int
	current psPipeline
	words   []psWord
	lists   bool // commas part words, as between the arguments of a method
	out     []psPipeline
	// branches is set where a command may run never, or often.
	branches bool
}

// psBlocks are the words before commands in braces.
var psBlocks = map[string]bool{"if": true, "else": true, "elseif": true, "foreach": true, "for": true, "while": true, "do": true, "try": true, "catch": true, "finally": true, "function": true, "switch": true}

func (s *psScanner) scan() {
	for s.at < len(s.text) {
		s.next()
	}
	s.endPipeline()
}

func (s *psScanner) add(kind psKind, text string) { s.words = append(s.words, psWord{text, kind}) }

func (s *psScanner) endCommand() {
	if len(s.words) > 0 {
		s.current.commands = append(s.current.commands, s.words)
		s.words = nil
	}
}

func (s *psScanner) endPipeline() {
	s.endCommand()
	if len(s.current.commands) > 0 || s.current.assigns != "" {
		s.out = append(s.out, s.current)
	}
	s.current = psPipeline{}
}

func (s *psScanner) next() {
	rest := s.text[s.at:]
	switch c := rest[0]; {
	case c == ' ' || c == '\t' || c == '\r' || c == ',' && s.lists:
		s.at++
	case strings.HasPrefix(rest, "`\n"), strings.HasPrefix(rest, "&&"), strings.HasPrefix(rest, "||"):
		s.at += 2
		if c != '`' {
			s.branches = s.branches || c == '|'
			s.endPipeline()
		}
	case c == '\n':
		s.at++
		if len(s.words) > 0 || len(s.current.commands) == 0 { // else the line ended with a bar
			s.endPipeline()
		}
	case c == ';':
		s.at++
		s.endPipeline()
	case c == '|':
		s.at++
		s.endCommand()
	case c == '#':
		s.skipTo("\n")
		s.at-- // the end of the line counts
	case strings.HasPrefix(rest, "<#"):
		s.skipTo("#>")
	case strings.HasPrefix(rest, "@'"), strings.HasPrefix(rest, `@"`):
		s.hereString(rest[1])
	case c == '\'' || c == '"':
		s.quoted(c)
	case c == '{' && s.inBlock():
		s.at++
		s.branches = true
		s.endPipeline()
	case c == '(' || c == '{' || c == '[' || strings.HasPrefix(rest, "@(") || strings.HasPrefix(rest, "@{") || strings.HasPrefix(rest, "$("):
		s.group()
	case c == ')' || c == '}' || c == ']':
		s.at++
		s.endPipeline()
	case c == '$':
		s.variable()
	default:
		s.bare()
	}
}

func (s *psScanner) inBlock() bool {
	first := s.words
	if len(s.current.commands) > 0 {
		first = s.current.commands[0]
	}
	return len(first) > 0 && first[0].kind == psBare && psBlocks[strings.ToLower(first[0].text)]
}

func (s *psScanner) skipTo(end string) {
	if n := strings.Index(s.text[s.at:], end); n >= 0 {
		s.at += n + len(end)
	} else {
		s.at = len(s.text) + 1
	}
}

// hereString reads the lines between @' and '@.
func (s *psScanner) hereString(quote byte) {
	head, body, _ := strings.Cut(s.text[s.at+2:], "\n")
	text, rest, ok := strings.Cut("\n"+body, "\n"+string(quote)+"@")
	if !ok || strings.TrimSpace(head) != "" {
		s.add(psOther, "")
		s.at = len(s.text)
		return
	}
	s.at = len(s.text) - len(rest)
	kind := psText
	if quote == '"' && strings.ContainsAny(text, "$`") {
		kind = psOther
	}
	s.add(kind, strings.TrimSuffix(strings.TrimPrefix(text, "\n"), "\r"))
}

// quoted reads a text between quotes; a quote in it is doubled.
func (s *psScanner) quoted(quote byte) {
	var text strings.Builder
	kind := psText
	for i := s.at + 1; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == quote && i+1 < len(s.text) && s.text[i+1] == quote:
			text.WriteByte(c)
			i++
		case c == quote:
			s.at = i + 1
			s.add(kind, text.String())
			return
		case quote == '"' && c == '`' && i+1 < len(s.text):
			i++
			if n := strings.IndexByte("nrt0", s.text[i]); n >= 0 {
				text.WriteByte("\n\r\t\x00"[n])
			} else {
				text.WriteByte(s.text[i])
			}
		default:
			if quote == '"' && c == '$' {
				kind = psOther
			}
			text.WriteByte(c)
		}
	}
	s.at = len(s.text)
	s.add(psOther, "")
}

// group reads what is in brackets, going by brackets and quotes.
func (s *psScanner) group() {
	depth := 0
	var quote byte
	for i := s.at; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '`':
			i++
		case c == '\'' || c == '"':
			quote = c
		case strings.IndexByte("([{", c) >= 0:
			depth++
		case strings.IndexByte(")]}", c) >= 0:
			if depth--; depth <= 0 {
				s.add(psGroup, s.text[s.at:i+1])
				s.at = i + 1
				return
			}
		}
	}
	s.add(psOther, "")
	s.at = len(s.text)
}

// variable reads a variable, or an assignment to it.
func (s *psScanner) variable() {
	i := s.at + 1
	for i < len(s.text) && isInName(s.text[i]) {
		i++
	}
	name := strings.ToLower(s.text[s.at+1 : i])
	s.at = i
	after := strings.TrimLeft(s.text[i:min(len(s.text), i+8)], " \t")
	switch {
	case len(s.words) == 0 && len(s.current.commands) == 0 && strings.HasPrefix(after, "=") && !strings.HasPrefix(after, "=="):
		s.at += strings.IndexByte(s.text[i:], '=') + 1
		s.current.assigns = name
	case strings.HasPrefix(s.text[i:], ".") || strings.HasPrefix(s.text[i:], "["):
		s.bare() // of which a part is meant
		s.words[len(s.words)-1].kind = psOther
	default:
		s.add(psVariable, name)
	}
}

// isInName reports whether a byte is one of a variable's name.
func isInName(c byte) bool {
	return c == '_' || c == ':' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf
}

// bare reads a word without quotes.
func (s *psScanner) bare() {
	i := s.at
	for i < len(s.text) && !strings.ContainsRune(" \t\r\n|;(){}'\"", rune(s.text[i])) && (s.text[i] != ',' || !s.lists) {
		if s.text[i] == '`' {
			i++
		}
		i++
	}
	i = min(max(i, s.at+1), len(s.text))
	text := s.text[s.at:i]
	s.at = i
	if strings.ContainsAny(text, "$`") {
		s.add(psOther, text)
		return
	}
	s.add(psBare, text)
}
