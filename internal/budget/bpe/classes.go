package bpe

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// class says how the split patterns see a character. Symbols, punctuation,
// controls and unassigned code points have none of the bits.
type class uint8

const (
	upper    class = 1 << iota // Lu, Lt
	lower                      // Ll
	caseless                   // Lm, Lo
	mark                       // M
	number                     // N
	space                      // White_Space, but for CR and LF
	newline                    // CR, LF
	// multibyte marks, in the table of first bytes alone, a byte that is not
	// ASCII: the character has to be decoded.
	multibyte

	letter     = upper | lower | caseless
	word       = letter | mark
	whitespace = space | newline
	// notSymbol is what ends a run of symbols; marks do not.
	notSymbol = letter | number | whitespace
)

// classesText lists the general categories that the patterns distinguish, by ranges of code
// points, as Unicode 16.0.0 has them: the version that tiktoken's regular expressions are
// built with. The unicode package follows the toolchain instead, and with it counts would
// differ between builds. classes_gen.go makes it.
//
//go:embed classes.txt
var classesText string

// spaces is the property White_Space without CR and LF.
const spaces = "\t\v\f \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005" +
	"\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"

// classTable maps every code point to its class: ASCII directly, the rest
// through blocks of 256 code points, of which equal ones are stored once.
type classTable struct {
	first  [256]class // by a character's first byte
	block  [(utf8.MaxRune + 1) >> 8]uint16
	blocks [][256]class
}

var loadClasses = sync.OnceValues(func() (*classTable, error) { return parseClasses(classesText) })

func parseClasses(text string) (*classTable, error) {
	flat := make([]class, utf8.MaxRune+1)
	for line := range strings.Lines(text) {
		if err := setRange(flat, strings.TrimSuffix(line, "\n")); err != nil {
			return nil, err
		}
	}
	for _, r := range spaces {
		flat[r] = space
	}
	flat['\r'], flat['\n'] = newline, newline

	t := &classTable{}
	for i := range t.first {
		t.first[i] = multibyte
	}
	copy(t.first[:utf8.RuneSelf], flat)
	seen := map[[256]class]uint16{}
	for i := range t.block {
		b := [256]class(flat[i<<8:])
		at, ok := seen[b]
		if !ok {
			at = uint16(len(t.blocks))
			seen[b] = at
			t.blocks = append(t.blocks, b)
		}
		t.block[i] = at
	}
	return t, nil
}

func setRange(flat []class, line string) error {
	span, name, _ := strings.Cut(line, " ")
	first, last, _ := strings.Cut(span, "-")
	lo, errLo := strconv.ParseUint(first, 16, 21)
	hi, errHi := strconv.ParseUint(last, 16, 21)
	c, known := map[string]class{"U": upper, "L": lower, "C": caseless, "M": mark, "N": number}[name]
	if errLo != nil || errHi != nil || !known || lo > hi || hi > utf8.MaxRune {
		return fmt.Errorf("classes.txt: bad line %q", line)
	}
	for r := lo; r <= hi; r++ {
		flat[r] = c
	}
	return nil
}

// at returns the class of the character that begins at s[i], and its length in bytes.
// An invalid byte is a character by itself, of the class of U+FFFD.
func (t *classTable) at(s string, i int) (class, int) {
	if c := t.first[s[i]]; c != multibyte {
		return c, 1
	}
	return t.decode(s, i)
}

// decode is at for characters outside ASCII.
//
//go:noinline
func (t *classTable) decode(s string, i int) (class, int) {
	r, size := utf8.DecodeRuneInString(s[i:])
	return t.blocks[t.block[r>>8]][r&0xff], size
}

// skip returns the end of the run, from s[i] on, of characters of the classes in.
func (t *classTable) skip(s string, i int, in class) int {
	for i < len(s) {
		c := t.first[s[i]]
		if c&in != 0 {
			i++
			continue
		}
		if c != multibyte {
			break
		}
		c, n := t.decode(s, i)
		if c&in == 0 {
			break
		}
		i += n
	}
	return i
}
