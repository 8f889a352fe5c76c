package summarize

import (
	"context"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

// Backend writes summaries: a model with an API, a runtime that brings its own model, or
// rules that need none. Its methods may be called from any goroutine.
type Backend interface {
	// Summarize writes one text for the request. It returns when ctx ends. An error
	// that will come again for the same request wraps ErrPermanent.
	Summarize(ctx context.Context, r Request) (Output, error)
}

// Request is one chunk of a span. What it refers to must not be changed.
type Request struct {
	// TaskID and Chunk identify requests; the same chunk of the same task is the same
	// request.
	TaskID    string
	Chunk     int
	SessionID string
	// From and To are the span that the text will replace.
	From, To eventlog.Seq
	// System and Prompt are the text for a model, made of everything below. They are empty for a Rules.
	System, Prompt string
	// Older is the text that the new one extends; empty if there is none.
	Older string
	// Groups are the part of the span that Older does not cover.
	Groups []*reduce.Group
	// Reminders are those of the span that hold at its end.
	Reminders []reduce.Reminder
	// MaxOutputTokens bounds the text, measured by Count.
	MaxOutputTokens uint64
	Count           func(string) uint64
}

// Output is what a backend wrote.
type Output struct {
	Text string
	// InputTokens and OutputTokens are the backend's own count; 0 if it gave none.
	InputTokens, OutputTokens uint64
	// Model is what wrote the text; empty if no model did.
	Model string
}

// Rules is a Backend that is not a model: it reads only Older and Groups. It gets a span whole, whatever its size,
// and may copy its text from the span.
type Rules interface {
	Backend
	Rules()
}

// Settler is a Backend that learns what became of its texts.
type Settler interface {
	Backend
	// Settled is called once for each text that Summarize returned: with the summary
	// once it is durable, with one that has no ID if further chunks follow, or with
	// the reason why the text was not used. It must not block.
	Settled(r Request, s Summary, err error)
}
