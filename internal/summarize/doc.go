// Package summarize has summaries written: the texts that replace spans of a log. It works in the background and
// ahead of need. A Scheduler divides a span into requests, asks a backend for each, and accepts or refuses the
// answers.
package summarize
