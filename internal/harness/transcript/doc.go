// Package transcript is what the readers of other harnesses' transcripts share:
// the result type, the builder that turns a reader's entries into sessions which
// the log admits, and the reading of JSON records with their line numbers.
package transcript
