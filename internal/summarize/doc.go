// Package summarize writes the texts that replace spans of a log, in the background and
// ahead of need: what to summarise, by what instructions, with which backend, and which
// answers to accept.
package summarize
