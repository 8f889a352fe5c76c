package summarize

import (
	"context"
	"fmt"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/summarize/prompt"
)

// Proposal asks for the summary of a span.
type Proposal struct {
	SessionID string
	// From and To are the first and the last event of the span.
	From, To eventlog.Seq
	// Extends is the id of the summary that the new one extends; empty if none.
	Extends string
	// Summarizer is a name in the registry.
	Summarizer   string
	Instructions prompt.Instructions
	// MaxInputTokens bounds one request, prompts included; 0 takes the registry's limit.
	MaxInputTokens uint64
	// MaxOutputTokens bounds the text. If Sized is set, only a summary that was made for this size is accepted.
	MaxOutputTokens uint64
	Sized           bool
	// Tokenizer is the name of the tokenizer of Material.Count.
	Tokenizer string
	// Trigger says what caused the proposal, for watchers.
	Trigger string
	// Of is the incarnation of the session; 0 is the session that has the id when the work begins.
	Of eventlog.Incarnation
}

// SummaryID returns the id of the proposal's summary.
func (p Proposal) SummaryID() string {
	return SummaryID(p.From, p.To, p.Summarizer, p.asked())
}

// asked identifies what is asked of the summarizer besides the span. It is a part of the summary's id.
func (p Proposal) asked() string {
	if !p.Sized {
		return p.Instructions.Fingerprint()
	}
	return fmt.Sprintf("%s\n%d", p.Instructions.Fingerprint(), p.MaxOutputTokens)
}

// validate returns an *eventlog.InvalidError that names the field.
func (p Proposal) validate() error {
	switch {
	case p.SessionID == "":
		return &eventlog.InvalidError{Field: "session_id", Reason: "must not be empty"}
	case p.From == 0 || p.To < p.From:
		return &eventlog.InvalidError{Field: "to", Reason: fmt.Sprintf("events %d to %d are no span", p.From, p.To)}
	case p.MaxOutputTokens == 0:
		return &eventlog.InvalidError{Field: "max_output_tokens", Reason: "must be greater than 0"}
	default:
		return p.Instructions.Validate()
	}
}

// Material is the input of a summary. Nobody may change it afterwards.
type Material struct {
	// Groups are the groups that the older summary does not cover, without the anchor and pinned groups, in the order
	// of the log.
	Groups []*reduce.Group
	// Reminders are the reminders of the span that are live at its end.
	Reminders []reduce.Reminder
	// Older is the text of the summary that is extended; empty if there is none.
	Older string
	// Ledger and Index cover the whole span.
	Ledger, Index string
	// Count counts tokens for all limits. It may be called from any goroutine.
	Count func(string) uint64
}

// Sessions is the scheduler's access to sessions. Its methods may be called from any goroutine.
type Sessions interface {
	// Material returns the material of the proposal's span.
	Material(ctx context.Context, p Proposal) (Material, error)
	// Summarized is called when a summary is durable, before watchers are notified.
	Summarized(ctx context.Context, sessionID string, s Summary)
}

// Observer is notified of what happens. It must not block, and may be called from any
// goroutine.
type Observer interface {
	// SummaryStarted is called when a backend is about to be asked.
	SummaryStarted(p Proposal)
	// SummaryReady is called when a summary is durable.
	SummaryReady(p Proposal, s Summary)
	// SummaryFailed is called when an attempt ended without a summary.
	SummaryFailed(p Proposal, reason string)
	// BreakerChanged is called when a summarizer's circuit breaker opens or closes.
	BreakerChanged(summarizer string, state BreakerState)
}
