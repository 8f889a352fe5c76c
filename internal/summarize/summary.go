package summarize

import (
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Summary is a text that replaces a span of a log: every group that begins in From..To, without the anchor and pinned
// groups. It is stored next to the log and never changes.
type Summary struct {
	// ID is unique within the session. It depends only on the span and on how the text was written, so that the same
	// work is stored once.
	ID string
	// From and To are the first and the last event of the span.
	From, To eventlog.Seq
	// Text is prose by a model or the caller, or lines picked from the span.
	Text string
	// Ledger and Index were written from the log when the summary was made. A context shows others with the text,
	// which are written for its own budget.
	Ledger, Index string
	// Summarizer is the name of the summarizer in the configuration, or "caller".
	Summarizer string
	// Model is the provider's name of the model that wrote the text; empty if none did.
	Model string
	// Instructions is the fingerprint of the instructions for the text.
	Instructions string
	// Extends is the id of the summary that this one extends; empty if there is none.
	Extends string
	// InputTokens and OutputTokens are what the summarizer read and wrote in all chunks, by its own count if it gave
	// one.
	InputTokens, OutputTokens uint64
	Time                      time.Time
	// Version is the version of the rules by which it was made.
	Version uint32
}

// Version is the version of this release's rules. A summary of another version stays in use but is not extended.
const Version = 1

// Caller is the Summarizer of a caller's own texts.
const Caller = "caller"
