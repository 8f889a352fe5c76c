package assemble

import (
	"context"
	"unicode/utf8"

	"github.com/contextd/contextd/internal/decide"
	"github.com/contextd/contextd/internal/lifecycle"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
)

// news returns the lifecycle events that report a recorded context.
func (c *Context) news(reminders decide.ReminderNews) []lifecycle.Event {
	var out []lifecycle.Event
	if c.Collapsed != nil {
		out = append(out, CompactedEvent(lifecycle.ModeAuto, eventlog.TriggerBudgetPressure, *c.Collapsed, c.AsOf, c.Projection.Previous))
	}
	out = append(out, c.projected())
	gone := func(what lifecycle.Type, all []reduce.Reminder) {
		for _, r := range all {
			out = append(out, lifecycle.Happened(what, lifecycle.AttributeReminder, r.Name(), lifecycle.AttributeEventSeq, lifecycle.Decimal(r.Seq)))
		}
	}
	gone(lifecycle.ReminderDeduped, reminders.Deduped)
	gone(lifecycle.ReminderExpired, reminders.Expired)
	gone(lifecycle.ReminderFolded, reminders.Folded)
	if n := reminders.Decremented; n > 0 {
		out = append(out, lifecycle.Happened(lifecycle.ReminderDecremented, lifecycle.AttributeCount, lifecycle.Decimal(n)))
	}
	return out
}

func (c *Context) projected() lifecycle.Event {
	r := c.Projection
	return lifecycle.Happened(lifecycle.Projected,
		lifecycle.AttributeProjectionID, r.ID, lifecycle.AttributeAsOf, lifecycle.Decimal(r.AsOf),
		lifecycle.AttributePolicy, r.Policy, lifecycle.AttributeReason, r.Reason,
		lifecycle.AttributePrefixHash, c.PrefixHash, lifecycle.AttributeContextHash, c.ContextHash,
		lifecycle.AttributeMessages, lifecycle.Decimal(c.MessageCount), lifecycle.AttributeTokens, lifecycle.Decimal(r.Tokens+r.Injected),
		lifecycle.AttributeReclaimedTokens, lifecycle.Decimal(r.ReclaimedTokens),
		lifecycle.AttributeKeptEvents, lifecycle.Decimal(r.Kept.Len()), lifecycle.AttributeRedactedEvents, lifecycle.Decimal(r.Redacted.Len()),
		lifecycle.AttributeDroppedEvents, lifecycle.Decimal(r.Dropped.Len()), lifecycle.AttributePointers, lifecycle.Decimal(len(r.Pointers)),
		lifecycle.AttributeSummaryID, r.After.Summary)
}

// CompactedEvent reports a compaction that was decided when asOf was the head. previous is the projection before it;
// empty if there was none.
func CompactedEvent(mode string, trigger eventlog.CompactionTrigger, done decide.Collapsed, asOf eventlog.Seq, previous string) lifecycle.Event {
	summaryID, text := "", ""
	if done.Summary != nil {
		summaryID, text = done.Summary.ID, done.Summary.Text
	}
	return lifecycle.Happened(lifecycle.Compacted,
		lifecycle.AttributeMode, mode, lifecycle.AttributeTrigger, lifecycle.TriggerName(trigger),
		lifecycle.AttributeStrategy, string(done.Strategy), lifecycle.AttributePolicy, done.Policy,
		lifecycle.AttributeTokensBefore, lifecycle.Decimal(done.Before.Tokens), lifecycle.AttributeTokensAfter, lifecycle.Decimal(done.After.Tokens),
		lifecycle.AttributeMessagesBefore, lifecycle.Decimal(done.Before.Messages), lifecycle.AttributeMessagesAfter, lifecycle.Decimal(done.After.Messages),
		lifecycle.AttributeArchivedMessages, lifecycle.Decimal(max(done.Archived, 0)),
		lifecycle.AttributeAsOf, lifecycle.Decimal(asOf), lifecycle.AttributeProjectionBefore, previous,
		lifecycle.AttributeSummaryID, summaryID, lifecycle.AttributeSummaryChars, lifecycle.Decimal(utf8.RuneCountInString(text)))
}

// knownReminders returns how far the session's watchers were informed about reminders, as the newest record says.
func (s *session) knownReminders(ctx context.Context, store eventlog.Artifacts) (decide.Known, error) {
	if s.known != nil {
		return *s.known, nil
	}
	id, err := records.Newest(ctx, store, s.id)
	if id == "" || err != nil {
		return decide.Known{}, err
	}
	r, err := records.Get(ctx, store, s.id, id)
	return decide.Known{AsOf: r.AsOf, Turns: r.RemindersTurns, Collapsed: r.RemindersCollapsed}, err
}
