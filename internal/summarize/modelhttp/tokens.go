package modelhttp

import (
	"math"
	"strconv"
)

// Tokens is a count in an answer. It reads what it can and is 0 otherwise: a text
// is not lost over its statistics.
type Tokens uint64

// UnmarshalJSON takes a number; everything else is 0.
func (t *Tokens) UnmarshalJSON(b []byte) error {
	*t = 0
	if n, err := strconv.ParseFloat(string(b), 64); err == nil && n > 0 && n < math.MaxInt64 {
		*t = Tokens(n)
	}
	return nil
}

// Name returns what an answer calls its model, bounded; the configured name if it
// gives none.
func (o Options) Name(answered string) string {
	if s := (hidden{}).message(answered); s != "" {
		return s
	}
	return o.Model
}
