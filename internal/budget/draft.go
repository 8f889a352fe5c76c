package budget

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Piece is a part of a text and what it costs: see Counter.Cost.
type Piece struct {
	Text string
	Cost uint64
}

// Piece measures a part of a text.
func (g Gauge) Piece(text string) Piece { return Piece{text, g.counter.Cost(text)} }

// Tokens is how many tokens a text has that costs so much.
func (g Gauge) Tokens(cost uint64) uint64 {
	unit := g.counter.PerToken()
	return (cost + unit - 1) / unit
}

// Adds reports whether a text of two parts costs what they cost, whatever counts it: where
// a line ends, and before a single space between words. It may be false where it does, too.
// No part is empty.
func Adds(before, after string) bool {
	rest := strings.TrimLeft(after, " \t")
	right, size := utf8.DecodeRuneInString(rest)
	if size == 0 || unicode.IsSpace(right) {
		return false
	}
	if indent := len(after) - len(rest); before[len(before)-1] == '\n' {
		return indent > 0 || right != '/' // symbols take breaks along, and slashes after these
	} else if indent != 1 || after[0] != ' ' {
		return false
	}
	left, _ := utf8.DecodeLastRuneInString(before)
	return !unicode.IsSpace(left)
}

// Sum is the size of a text that is written in pieces.
type Sum struct {
	gauge Gauge
	cost  uint64 // of all before last
	last  Piece  // what the next may cost less with
}

// Sum returns that of pieces that g measured.
func (g Gauge) Sum(pieces ...Piece) *Sum {
	s := &Sum{gauge: g}
	for _, p := range pieces {
		s.Add(p)
	}
	return s
}

// Add takes in a piece that the gauge measured. It counts again only where the text before
// may cost less with it.
func (s *Sum) Add(p Piece) {
	switch {
	case p.Text == "":
		return
	case s.last.Text == "" || Adds(s.last.Text, p.Text):
		s.cost += s.last.Cost
	default:
		p = s.gauge.Piece(s.last.Text + p.Text)
	}
	s.last = p
}

// Tokens is the size of the text: what Text counts in it.
func (s *Sum) Tokens() uint64 { return s.gauge.Tokens(s.cost + s.last.Cost) }

// Join is the text of pieces.
func Join(pieces []Piece) string {
	var text strings.Builder
	for _, p := range pieces {
		text.WriteString(p.Text)
	}
	return text.String()
}

// Draft is a text that is written in pieces, and its size.
type Draft struct {
	Sum
	text strings.Builder
}

// Draft returns an empty one, which has room for so many bytes.
func (g Gauge) Draft(bytes int) *Draft {
	d := &Draft{Sum: Sum{gauge: g}}
	d.text.Grow(bytes)
	return d
}

// Add writes pieces.
func (d *Draft) Add(pieces ...Piece) {
	for _, p := range pieces {
		d.Sum.Add(p)
		d.text.WriteString(p.Text)
	}
}

// String is what was written.
func (d *Draft) String() string { return d.text.String() }
