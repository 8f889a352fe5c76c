package decide

import (
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

// ReminderReport says what a compaction did to reminders, by their dedupe keys or
// event ids.
type ReminderReport struct {
	Expired, Replaced, Folded, Preserved []string
	// Decremented is how many stay and have fewer remaining turns than at first.
	Decremented int
}

// reminders says what became of those that had not left before.
func (in Inputs) reminders(left eventlog.Seq, after Projected) ReminderReport {
	var out ReminderReport
	all := in.Conversation.Reminders()
	before := reduce.Fates(all, in.Conversation.Turns(), left)
	for i, fate := range reduce.Fates(all, in.Conversation.Turns(), after.Through()) {
		r := all[i]
		gone := before[i] != reduce.ReminderLive && r.Seq <= left
		switch {
		case gone: // an earlier compaction reported it
		case fate == reduce.ReminderExpired:
			out.Expired = append(out.Expired, r.Name())
		case fate == reduce.ReminderReplaced:
			out.Replaced = append(out.Replaced, r.Name())
		case fate == reduce.ReminderFolded:
			out.Folded = append(out.Folded, r.Name())
		default:
			if r.TTLTurns != nil && in.Conversation.Turns() > r.Turn {
				out.Decremented++
			}
			if r.PreserveOnCompact && r.Seq <= after.Through() {
				out.Preserved = append(out.Preserved, r.Name())
			}
		}
	}
	return out
}

// Known is up to where the watchers of a session know what became of its reminders, whatever
// contexts were asked for: the last event, the turns, and the event through which groups were
// dropped, the furthest of each.
type Known struct {
	AsOf      eventlog.Seq
	Turns     uint32
	Collapsed eventlog.Seq
}

// ReminderNews is what became of reminders since something was known. Each is in one of the
// lists once in the life of a session.
type ReminderNews struct {
	Expired, Replaced, Folded []reduce.Reminder
	// Decremented is how many stay and have fewer remaining turns than they had.
	Decremented int
}

// ReminderNews says what a projection shows of reminders that is not known, and what is known
// with it. A projection of the past shows nothing new.
func (p Projected) ReminderNews(known Known) (news ReminderNews, now Known) {
	if p.Conversation.Head() < known.AsOf {
		return ReminderNews{}, known
	}
	now = Known{p.Conversation.Head(), max(known.Turns, p.Conversation.Turns()), max(known.Collapsed, p.Through())}
	all := p.Conversation.Reminders()
	old := 0
	for old < len(all) && all[old].Seq <= known.AsOf {
		old++
	}
	before := reduce.Fates(all[:old], known.Turns, known.Collapsed)
	for i, fate := range reduce.Fates(all, now.Turns, now.Collapsed) {
		if i < old && before[i] != reduce.ReminderLive {
			continue
		}
		switch r := all[i]; {
		case fate == reduce.ReminderExpired:
			news.Expired = append(news.Expired, r)
		case fate == reduce.ReminderReplaced:
			news.Replaced = append(news.Replaced, r)
		case fate == reduce.ReminderFolded:
			news.Folded = append(news.Folded, r)
		case r.TTLTurns != nil && now.Turns > max(r.Turn, known.Turns):
			news.Decremented++
		}
	}
	return news, now
}
