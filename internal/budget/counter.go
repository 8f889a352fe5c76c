package budget

// Counter counts the tokens of texts under one tokenizer.
//
// A Counter is a pure function of the text: the same text has the same count in
// every process and on every machine, whatever was counted before. It is safe
// for concurrent use, takes time about linear in the text, accepts every string
// (invalid UTF-8 included: each invalid byte counts as U+FFFD), and retains
// nothing of it that the caller could see.
type Counter interface {
	// Name is the tokenizer's name, as in configuration and reports.
	Name() string
	Count(text string) Count
	// Cost measures a text in parts of a token, which Count rounds up: where a text is cut
	// between lines or words, see Sum, its parts cost together what it costs.
	Cost(text string) uint64
	// PerToken is how many of those parts a token has.
	PerToken() uint64
}

// Count is a number of tokens and how it was found.
type Count struct {
	Tokens int
	// Estimated is set when the number is not exactly what the tokenizer would
	// produce: the tokenizer is not public, or the text was cut so that it could
	// be counted in bounded time.
	Estimated bool
}

// plus is the sum of two counts; it is an estimate as soon as either is.
func (c Count) plus(d Count) Count {
	return Count{Tokens: c.Tokens + d.Tokens, Estimated: c.Estimated || d.Estimated}
}
