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
	// Tokenizer names what Material.Count counts by.
	Tokenizer string
	// Trigger says what caused the proposal, for those who watch.
	Trigger string
	// Of is the incarnation of the session; 0 takes the id's incarnation at the begin of the work.
	Of eventlog.Incarnation
}

// SummaryID is the id of the summary that the proposal leads to.
func (p Proposal) SummaryID() string {
	return SummaryID(p.From, p.To, p.Summarizer, p.asked())
}

// asked identifies what is asked of the summarizer beside the span; it is a part of the summary's id.
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

// Material is what a span is summarised from. It must not be changed afterwards.
type Material struct {
	// Groups are what the older summary does not cover, without anchors and pinned messages, in the order of the log.
	Groups []*reduce.Group
	// Reminders are those of the span that hold at its end.
	Reminders []reduce.Reminder
	// Older is the text of the summary that is extended; empty if there is none.
	Older string
	// Ledger and Index cover the whole span.
	Ledger, Index string
	// Count is the gauge that all limits are measured by. It may be called from any goroutine.
	Count func(string) uint64
}

// Sessions is the scheduler's access to sessions. Its methods may be called from any goroutine.
type Sessions interface {
	// Material gathers what the proposal's span is summarised from.
	Material(ctx context.Context, p Proposal) (Material, error)
	// Summarized is called after a summary became durable, and before anybody is notified
	// of it.
	Summarized(ctx context.Context, sessionID string, s Summary)
}

// Observer is notified of what happens. It must not block, and may be called from any
// goroutine.
type Observer interface {
	// SummaryStarted is called when a backend is about to be asked.
	SummaryStarted(p Proposal)
	// SummaryReady is called when a summary is durable.
	SummaryReady(p Proposal, s Summary)
	// SummaryFailed is called when an attempt ended without one.
	SummaryFailed(p Proposal, reason string)
	// BreakerChanged is called when a summarizer's circuit breaker opens or closes.
	BreakerChanged(summarizer string, state BreakerState)
}
