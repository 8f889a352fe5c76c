package budget

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Piece is a part of a text with its cost: see Counter.Cost.
type Piece struct {
	Text string
	Cost uint64
}

// Piece measures the cost of a part of a text.
func (g Gauge) Piece(text string) Piece { return Piece{text, g.counter.Cost(text)} }

// Tokens converts a cost to tokens, rounded up.
func (g Gauge) Tokens(cost uint64) uint64 {
	unit := g.counter.PerToken()
	return (cost + unit - 1) / unit
}

// Adds reports whether the costs of two parts of a text add up to the cost of the text, with every counter. They do
// if the first part ends a line, or if the second begins with a single space between words. false means that they may
// not. Neither part may be empty.
func Adds(before, after string) bool {
	rest := strings.TrimLeft(after, " \t")
	right, size := utf8.DecodeRuneInString(rest)
	if size == 0 || unicode.IsSpace(right) {
		return false
	}
	if indent := len(after) - len(rest); before[len(before)-1] == '\n' {
		return indent > 0 || right != '/' // symbols merge with a following line break and slashes
	} else if indent != 1 || after[0] != ' ' {
		return false
	}
	left, _ := utf8.DecodeLastRuneInString(before)
	return !unicode.IsSpace(left)
}

// Sum computes the size of a text that is written in pieces.
type Sum struct {
	gauge Gauge
	cost  uint64 // of all pieces before last
	last  Piece  // may cost less together with the next piece
}

// Sum returns the sum of pieces that g measured.
func (g Gauge) Sum(pieces ...Piece) *Sum {
	s := &Sum{gauge: g}
	for _, p := range pieces {
		s.Add(p)
	}
	return s
}

// Add adds a piece that the gauge measured. It measures again only if the piece may cost less together with the text
// before it.
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

// Tokens returns the size of the text, as Gauge.Text counts it.
func (s *Sum) Tokens() uint64 { return s.gauge.Tokens(s.cost + s.last.Cost) }

// Join returns the text of pieces.
func Join(pieces []Piece) string {
	var text strings.Builder
	for _, p := range pieces {
		text.WriteString(p.Text)
	}
	return text.String()
}

// Draft is a text that is written in pieces, together with its size.
type Draft struct {
	Sum
	text strings.Builder
}

// Draft returns an empty draft with a capacity in bytes.
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

// String returns the text written so far.
func (d *Draft) String() string { return d.text.String() }
