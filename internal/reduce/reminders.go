package reduce

import (
	"fmt"
	"strings"

	"github.com/contextd/contextd/internal/ledger"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Expired reports whether the reminder's time is over when the log holds so many
// turns.
func (r Reminder) Expired(turns uint32) bool {
	return r.TTLTurns != nil && turns-min(turns, r.Turn) >= *r.TTLTurns
}

// Name is the reminder's dedupe key, or its event's id.
func (r Reminder) Name() string {
	if r.DedupeKey != "" {
		return r.DedupeKey
	}
	return r.EventID
}

// ReminderFate is what became of a reminder.
type ReminderFate uint8

// What may become of a reminder.
const (
	ReminderLive     ReminderFate = iota + 1
	ReminderExpired               // its time is over
	ReminderReplaced              // a newer one has its dedupe key
	ReminderFolded                // it was dropped with the turns around it; the digest quotes it
)

// Fates says what became of each reminder once the log holds so many turns and
// the run through an event is dropped. Reminders are oldest first, as from
// Conversation.Reminders.
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
			fates[i] = ReminderReplaced
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

// folded returns the reminders that are dropped with a run whose last group is of a turn:
// what was said later changes nothing about them, so that the digest stays what it
// is.
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

// quoteReminders quotes the beginnings of reminders, the newest first choice,
// within limit.
func quoteReminders(all []Reminder, limit uint64, count func(string) uint64) string {
	lines := make([]string, len(all))
	for i, r := range all {
		lines[i] = fmt.Sprintf("- event %d: %q\n", r.Seq, ledger.Cut(r.Body, quoteBytes))
	}
	text, _ := newestLines(lines, "reminders", limit, count)
	return text
}

// newestLines joins as many of the newest lines as fit in limit and says how many
// others there are; all says that there are none.
func newestLines(lines []string, what string, limit uint64, count func(string) uint64) (text string, all bool) {
	from, used := len(lines), uint64(0)
	for from > 0 && used+count(lines[from-1]) <= limit {
		from--
		used += count(lines[from])
	}
	if from == len(lines) {
		return "", from == 0
	}
	older := ""
	if from > 0 {
		older = fmt.Sprintf("- (%d older %s)\n", from, what)
	}
	return older + strings.Join(lines[from:], ""), from == 0
}
