// Package prompt writes the prompts with which a model summarises a span: instructions, which have a version and may
// be extended or replaced, and the span, quoted as data so that no text in it can end the quotation.
package prompt
