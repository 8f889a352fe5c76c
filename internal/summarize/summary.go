package summarize

import (
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Summary is a text that replaces a span of a log: every group that begins in
// events From..To, without anchored and pinned groups. It is kept next to the log and never
// changes.
type Summary struct {
	// ID is unique within the session and a function of the span and what the text
	// was written by, so that the same work is stored once.
	ID string
	// From and To are the first and the last event of the span.
	From, To eventlog.Seq
	// Text is prose by a model or the caller, or lines picked from the span.
	Text string
	// Ledger and Index were written from the log when the summary was made; what a
	// context shows with the text is written again for its own budget.
	Ledger, Index string
	// Summarizer is the name of the summarizer in the configuration, or "caller".
	Summarizer string
	// Model is what wrote the text, as its provider names it; empty if none did.
	Model string
	// Instructions is the fingerprint of the instructions it was written by.
	Instructions string
	// Extends is the id of the summary whose text went into this one; empty if none.
	Extends string
	// InputTokens and OutputTokens are what the summarizer was given and wrote, over
	// all chunks, by its own count where it gave one.
	InputTokens, OutputTokens uint64
	Time                      time.Time
	// Version is that of the rules it was made by.
	Version uint32
}

// Version is that of the rules of this release. A summary of another version stays
// in use and is not extended.
const Version = 1

// Caller is the Summarizer of texts that the caller brought.
const Caller = "caller"
