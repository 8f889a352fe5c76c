package reduce

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/ledger"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Reminder is a reminder event with its place in the log.
type Reminder struct {
	*eventlog.Reminder
	EventID string
	Seq     eventlog.Seq
	Turn    uint32
	Tokens  uint64
}

// Expired reports whether the reminder's time is over when the log has this many turns.
func (r Reminder) Expired(turns uint32) bool {
	return r.TTLTurns != nil && turns-min(turns, r.Turn) >= *r.TTLTurns
}

// Name returns the reminder's dedupe key, or its event's id.
func (r Reminder) Name() string {
	if r.DedupeKey != "" {
		return r.DedupeKey
	}
	return r.EventID
}

// ReminderFate says whether a reminder is live, and if not, why.
type ReminderFate uint8

// The fates of a reminder.
const (
	ReminderLive    ReminderFate = iota + 1
	ReminderExpired              // its time is over
	ReminderDeduped              // a newer one has its dedupe key
	ReminderFolded               // it was dropped with the turns around it; the digest quotes it
)

// Fates returns the fate of each reminder when the log has this many turns and the run through event collapsed is
// dropped. The reminders are oldest first, as from Conversation.Reminders.
func Fates(all []Reminder, turns uint32, collapsed eventlog.Seq) []ReminderFate {
	newest := map[string]int{}
	for i, r := range all {
		if r.DedupeKey != "" {
			newest[r.DedupeKey] = i
		}
	}
	fates := make([]ReminderFate, len(all))
	for i, r := range all {
		switch n, keyed := newest[r.DedupeKey]; {
		case keyed && n != i:
			fates[i] = ReminderDeduped
		case r.Expired(turns):
			fates[i] = ReminderExpired
		case r.Seq <= collapsed && !r.PreserveOnCompact:
			fates[i] = ReminderFolded
		default:
			fates[i] = ReminderLive
		}
	}
	return fates
}

// folded returns the reminders that are dropped with a run whose last group is of this turn. It ignores later
// reminders, so that the digest does not change.
func folded(all []Reminder, through eventlog.Seq, turn uint32) []Reminder {
	n := 0
	for n < len(all) && all[n].Seq <= through {
		n++
	}
	var out []Reminder
	for i, fate := range Fates(all[:n], turn, through) {
		if fate == ReminderFolded {
			out = append(out, all[i])
		}
	}
	return out
}

// Pending returns the reminders that would be live if the log ended at event to.
func (c *Conversation) Pending(to eventlog.Seq) []Reminder {
	var turn uint32
	for _, g := range c.groups {
		if g.First <= to {
			turn = g.Turn
		}
	}
	n := 0
	for n < len(c.reminders) && c.reminders[n].Seq <= to {
		n++
	}
	var out []Reminder
	for i, fate := range Fates(c.reminders[:n], turn, 0) {
		if fate == ReminderLive {
			out = append(out, c.reminders[i])
		}
	}
	return out
}

// quoteReminders quotes the beginnings of the newest reminders: of as many as fit in limit.
func quoteReminders(all []Reminder, limit uint64, gauge budget.Gauge) []budget.Piece {
	lines, _ := newestLines(len(all), func(i int) budget.Piece {
		return gauge.Piece(fmt.Sprintf("- event %d: %s\n", all[i].Seq, quotation(all[i].Body)))
	}, "reminders", limit, gauge)
	return lines
}

// newestLines returns as many of the newest of n lines as fit in limit, after a line that says how many others there
// are; all says that all fit. A line that is too long by itself is skipped, so that older ones may follow.
func newestLines(n int, line func(int) budget.Piece, what string, limit uint64, gauge budget.Gauge) (lines []budget.Piece, all bool) {
	from, used, large, which := n, uint64(0), 0, "older"
	for ; from > 0; from-- {
		next := line(from - 1)
		tokens := gauge.Tokens(next.Cost)
		if tokens > limit {
			large++
			continue
		}
		if used += tokens; used > limit {
			break
		}
		if lines = append(lines, next); large > 0 {
			which = "other"
		}
	}
	if from+large > 0 && len(lines) > 0 {
		lines = append(lines, gauge.Piece(fmt.Sprintf("- (%d %s %s)\n", from+large, which, what)))
	}
	slices.Reverse(lines)
	return lines, from+large == 0
}

// quotation returns the beginning of a text in quotes. Of a text whose characters are written as escapes it shows
// less.
func quotation(text string) string {
	for n := quoteBytes; ; n /= 2 {
		if written := strconv.Quote(ledger.Cut(text, n)); len(written) <= 2*quoteBytes {
			return written
		}
	}
}
