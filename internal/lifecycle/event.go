// Package lifecycle reports to runtimes what happens to their sessions, and asks them before compactions. A Journal
// stores the events of each session with the session and announces them on a Bus. A Watch reads them from where its
// watcher stopped. Hooks ask runtimes before a compaction and report the result after it.
//
// No runtime can block a session: a watcher reads at its own pace, an answer is awaited until its deadline, and a
// disconnected subscriber is skipped.
package lifecycle

import (
	"fmt"
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Type says what happened. Clients ignore types that they do not know.
type Type string

// The types of events, with the attributes that each may carry.
const (
	// CompactionStarted: mode, trigger, strategy, tokens_before.
	CompactionStarted Type = "compaction_started"
	// CompactionVetoed: mode, trigger, reason.
	CompactionVetoed Type = "compaction_vetoed"
	// Compacted: mode, trigger, strategy, policy, tokens_before, tokens_after,
	// messages_before, messages_after, archived_messages, as_of_seq, projection_id_before,
	// summary_id, summary_chars.
	Compacted Type = "compacted"
	// CompactionUndone: from_seq.
	CompactionUndone Type = "compaction_undone"
	// SummaryStarted: summarizer, from_seq, to_seq.
	SummaryStarted Type = "summary_started"
	// SummaryReady: summarizer, summary_id, from_seq, to_seq.
	SummaryReady Type = "summary_ready"
	// SummaryFailed: summarizer, from_seq, to_seq, reason.
	SummaryFailed Type = "summary_failed"
	// Projected: projection_id, as_of_seq, policy, reason, prefix_hash, context_hash,
	// messages, tokens, reclaimed_tokens, kept_events, redacted_events, dropped_events,
	// pointers, summary_id.
	Projected Type = "projected"
	// ReminderExpired: reminder, event_seq.
	ReminderExpired Type = "reminder_expired"
	// ReminderDeduped: reminder, event_seq.
	ReminderDeduped Type = "reminder_deduped"
	// ReminderFolded: reminder, event_seq.
	ReminderFolded Type = "reminder_folded"
	// ReminderDecremented: count.
	ReminderDecremented Type = "reminder_decremented"
	// BreakerOpen, BreakerHalfOpen and BreakerClosed: summarizer. They belong to no session, and all watchers get
	// them.
	BreakerOpen     Type = "breaker_open"
	BreakerHalfOpen Type = "breaker_half_open"
	BreakerClosed   Type = "breaker_closed"
	// EventsLost: count. The bus makes it in place of the lost events. It belongs to no session.
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
	AttributeEventSeq         = "event_seq"
	AttributeProjectionID     = "projection_id"
	AttributeProjectionBefore = "projection_id_before"
	AttributeAsOf             = "as_of_seq"
	AttributePrefixHash       = "prefix_hash"
	AttributeContextHash      = "context_hash"
	AttributeMessages         = "messages"
	AttributeTokens           = "tokens"
	AttributeReclaimedTokens  = "reclaimed_tokens"
	AttributeKeptEvents       = "kept_events"
	AttributeRedactedEvents   = "redacted_events"
	AttributeDroppedEvents    = "dropped_events"
	AttributePointers         = "pointers"
	AttributeCount            = "count"
)

// Event is something that happened. All watchers share it: after it was published, nobody may change its attributes.
type Event struct {
	// SessionID is empty if the event belongs to no session.
	SessionID string
	// Incarnation is eventlog.Session.IncarnationName of the session.
	Incarnation string
	// Number counts the events of the session from 1, without gaps. It is 0 if the event belongs to no session, and
	// so is not stored.
	Number     uint64
	Type       Type
	Time       time.Time
	Attributes map[string]string
}

// Happened returns an event without a number, which the journal sets. attributes are keys and values alternately;
// keys with an empty value are left out.
func Happened(what Type, attributes ...string) Event {
	e := Event{Type: what, Attributes: map[string]string{}}
	for i := 0; i < len(attributes); i += 2 {
		if attributes[i+1] != "" {
			e.Attributes[attributes[i]] = attributes[i+1]
		}
	}
	return e
}

// Decimal returns a number in the form of attributes.
func Decimal[N ~int | ~int64 | ~uint64](n N) string { return fmt.Sprint(n) }

// TriggerName returns a trigger in the form of attributes.
func TriggerName(t eventlog.CompactionTrigger) string {
	switch t {
	case eventlog.TriggerThreshold:
		return "threshold"
	case eventlog.TriggerBudgetPressure:
		return "budget_pressure"
	default:
		return "manual"
	}
}
