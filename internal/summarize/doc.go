// Package summarize writes the texts that stand for spans of a log, beside the
// requests and ahead of need: what to summarise, by what instructions, with which
// backend, and what to believe of what comes back.
package summarize
