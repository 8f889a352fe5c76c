package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/contextd/contextd/internal/fileview/program"
)

// heredoc returns a here-document of a script.
func heredoc(r *syntax.Redirect) string {
	if r.Hdoc == nil {
		return ""
	}
	text := ""
	quoted := true
	if len(r.Word.Parts) == 1 {
		lit, ok := r.Word.Parts[0].(*syntax.Lit)
		quoted = !ok || strings.Contains(lit.Value, `\`)
	}
	for _, part := range r.Hdoc.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			text += program.UnknownPart
			continue
		}
		if quoted {
			text += lit.Value
		} else {
			text += unquote(lit.Value, "$`\\")
		}
	}
	if r.Op != syntax.DashHdoc {
		return text
	}
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(strings.TrimLeft(line, "\t"))
	}
	return out.String()
}

// unquote removes the backslashes before the given characters (before all characters if none are given), and
// backslashes with line ends.
func unquote(text, before string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			switch next := text[i+1]; {
			case next == '\n':
				i++
				continue
			case before == "" || strings.IndexByte(before, next) >= 0:
				i++
			}
		}
		out.WriteByte(text[i])
	}
	return out.String()
}

// known returns a text if all of it is known; else it is empty.
func known(text string) string {
	if strings.Contains(text, program.UnknownPart) {
		return ""
	}
	return text
}

// literals returns words without expansions; nil if one has an expansion.
func literals(words []*syntax.Word) []string {
	out := wordsOf(words)
	if slices.ContainsFunc(out, func(w string) bool { return strings.Contains(w, program.UnknownPart) }) {
		return nil
	}
	return out
}

// wordsOf returns the words that the shell gives to a program.
func wordsOf(words []*syntax.Word) []string {
	var out []string
	for _, w := range words {
		var text strings.Builder
		for _, part := range w.Parts {
			switch part := part.(type) {
			case *syntax.Lit:
				text.WriteString(unquote(part.Value, ""))
			case *syntax.SglQuoted:
				if part.Dollar {
					text.WriteString(program.Unescape(part.Value))
				} else {
					text.WriteString(part.Value)
				}
			case *syntax.DblQuoted:
				for _, inner := range part.Parts {
					if lit, ok := inner.(*syntax.Lit); ok {
						text.WriteString(unquote(lit.Value, "$`\"\\"))
					} else {
						text.WriteString(program.UnknownPart)
					}
				}
			default:
				text.WriteString(program.UnknownPart)
			}
		}
		out = append(out, text.String())
	}
	return out
}
