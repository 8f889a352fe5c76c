package summarize

import (
	"context"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

// Backend writes summaries. It is a model with an API, a runtime with a model of its own, or rules that need no
// model. Its methods may be called from any goroutine.
type Backend interface {
	// Summarize writes one text for the request. It returns when ctx ends. An error wraps ErrPermanent if the same
	// request would fail again.
	Summarize(ctx context.Context, r Request) (Output, error)
}

// Request is one chunk of a span. Nobody may change what it refers to.
type Request struct {
	// TaskID and Chunk identify requests: the same chunk of the same task is the same request.
	TaskID    string
	Chunk     int
	SessionID string
	// From and To are the first and the last event of the span that the text will replace.
	From, To eventlog.Seq
	// System and Prompt are the texts for a model, made from the fields below. They are empty for a Rules.
	System, Prompt string
	// Older is the text that the new one extends; empty if there is none.
	Older string
	// Groups are the part of the span that Older does not cover.
	Groups []*reduce.Group
	// Reminders are the reminders of the span that are live at its end.
	Reminders []reduce.Reminder
	// MaxOutputTokens is the most tokens of the text, as Count measures them.
	MaxOutputTokens uint64
	Count           func(string) uint64
}

// Output is what a backend wrote.
type Output struct {
	Text string
	// InputTokens and OutputTokens are the backend's own count; 0 if it gave none.
	InputTokens, OutputTokens uint64
	// Model is the model that wrote the text; empty if none did.
	Model string
}

// Rules is a Backend without a model: it reads only Older and Groups. It gets a span in one request, whatever its
// size, and may copy its text from the span.
type Rules interface {
	Backend
	Rules()
}

// Settler is a Backend that is notified whether its texts were used.
type Settler interface {
	Backend
	// Settled is called once for each text that Summarize returned: with the summary when it is durable, with a
	// summary without ID if further chunks follow, or with the reason why the text was not used. It must not block.
	Settled(r Request, s Summary, err error)
}
