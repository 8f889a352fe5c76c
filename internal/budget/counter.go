package budget

// Count is a number of tokens and how it was found.
type Count struct {
	Tokens int
	// Estimated is set when the number is not exactly what the tokenizer would
	// produce: the tokenizer is not public, or the text was cut so that it could
	// be counted in bounded time.
	Estimated bool
}

// Counter counts the tokens of texts under one tokenizer.
//
// A Counter is a pure function of the text: the same text has the same count in
// every process and on every machine, whatever was counted before. It is safe
// for concurrent use, takes time about linear in the text, accepts every string
// (invalid UTF-8 included: each invalid byte counts as U+FFFD), and retains
// nothing of it that the caller could see.
type Counter interface {
	// Name is the tokenizer's name as it stands in configuration and reports.
	Name() string
	Count(text string) Count
}
