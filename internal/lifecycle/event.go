// Package lifecycle lets runtimes see what happens to their sessions and have a
// say in it. A Bus notifies watchers; Hooks ask before a compaction and report the result
// after it.
//
// Neither can hold a session up: a slow watcher loses events and learns how many, an answer
// is awaited until its deadline, and a disconnected subscriber is skipped.
package lifecycle

import "time"

// Type says what happened. Clients pass over types that they do not know.
type Type string

// The types of events, with the attributes that each may carry.
const (
	// CompactionStarted: mode, trigger, strategy, tokens_before.
	CompactionStarted Type = "compaction_started"
	// CompactionVetoed: mode, trigger, reason.
	CompactionVetoed Type = "compaction_vetoed"
	// Compacted: mode, trigger, strategy, policy, tokens_before, tokens_after,
	// messages_before, messages_after, archived_messages, summary_id, summary_chars.
	Compacted Type = "compacted"
	// CompactionUndone: from_seq.
	CompactionUndone Type = "compaction_undone"
	// SummaryStarted: summarizer, from_seq, to_seq.
	SummaryStarted Type = "summary_started"
	// SummaryReady: summarizer, summary_id, from_seq, to_seq.
	SummaryReady Type = "summary_ready"
	// SummaryFailed: summarizer, from_seq, to_seq, reason.
	SummaryFailed Type = "summary_failed"
	// ReminderExpired: reminder.
	ReminderExpired Type = "reminder_expired"
	// BreakerOpen, BreakerHalfOpen and BreakerClosed: summarizer. They are of no
	// session, and all watchers get it.
	BreakerOpen     Type = "breaker_open"
	BreakerHalfOpen Type = "breaker_half_open"
	BreakerClosed   Type = "breaker_closed"
	// EventsLost: count. It is made by the bus, of no session, and replaces the lost
	// events.
	EventsLost Type = "events_lost"
)

// The keys of attributes. Numbers are decimal.
const (
	AttributeMode             = "mode"
	AttributeTrigger          = "trigger"
	AttributeStrategy         = "strategy"
	AttributeReason           = "reason"
	AttributeTokensBefore     = "tokens_before"
	AttributeTokensAfter      = "tokens_after"
	AttributePolicy           = "policy"
	AttributeMessagesBefore   = "messages_before"
	AttributeMessagesAfter    = "messages_after"
	AttributeArchivedMessages = "archived_messages"
	AttributeSummaryChars     = "summary_chars"
	AttributeSummaryID        = "summary_id"
	AttributeSummarizer       = "summarizer"
	AttributeFromSeq          = "from_seq"
	AttributeToSeq            = "to_seq"
	AttributeReminder         = "reminder"
	AttributeCount            = "count"
)

// Event is something that happened to a session. It is not stored. All watchers
// share it: once published, nobody changes its attributes.
type Event struct {
	// SessionID is empty where the event is of no session in particular.
	SessionID  string
	Type       Type
	Time       time.Time
	Attributes map[string]string
}
