// Package transcript is what the readers of other harnesses' transcripts share:
// the result type, the builder that turns a reader's entries into sessions which
// the log admits, the reading of JSON records with their line numbers, and the
// differences by which a writer gives an entry again as it was.
package transcript
