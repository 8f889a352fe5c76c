// Package prompt writes what a model is given to summarise a span: instructions,
// which are versioned and may be extended or replaced, and the span itself as data
// that cannot end its own quotation.
package prompt
