// Package quote puts texts of others, such as tools, models and users, into lines that contextd writes, so that they
// cannot end these lines, begin others, or hide.
package quote

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// plain matches names of tools that providers allow, and those with a slash.
var plain = regexp.MustCompile(`^[A-Za-z0-9_.:/-]{1,128}$`)

// longestName is how many bytes are shown of a name that is not plain.
const longestName = 64

// Name is the name of a tool: quoted, and cut if it is long, where providers would not allow it.
func Name(tool string) string {
	if plain.MatchString(tool) {
		return tool
	}
	if len(tool) > longestName {
		n := longestName
		for !utf8.RuneStart(tool[n]) {
			n--
		}
		tool = tool[:n] + "…"
	}
	return strconv.Quote(tool)
}

// Line is a text in one line: white space is one blank.
func Line(text string) string { return Escape(strings.Join(strings.Fields(text), " ")) }

// Escape writes the characters of a text that are Unseen as JSON escapes them, so that JSON means the same after it.
func Escape(text string) string {
	if strings.IndexFunc(text, Unseen) < 0 {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		switch {
		case !Unseen(r):
			out.WriteRune(r)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.String()
}

// Unseen reports whether a character ends a line, controls a terminal, turns the direction of text, or is invisible
// without being a part of a script or of an emoji.
func Unseen(r rune) bool {
	switch {
	case r < 0x20, r == 0x7F:
		return true
	case r < 0x80:
		return false
	default:
		return unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control) || r == '\u200B' || r == '\u2060' || r == '\uFEFF' || r >= 0xE0000 && r <= 0xE007F
	}
}

// Lines marks every line of a text as quoted, as Markdown does; empty where the text is.
func Lines(text string) string {
	if text == "" {
		return ""
	}
	return "> " + ends.Replace(text) + "\n"
}

// ends begins a new quoted line after every character that a reader may take for the end of a line.
var ends = strings.NewReplacer("\r\n", "\n> ", "\r", "\n> ", "\n", "\n> ", "\v", "\n> ", "\f", "\n> ", "\u0085", "\n> ", "\u2028", "\n> ", "\u2029", "\n> ")
