package decide

import (
	"github.com/contextd/contextd/internal/lifecycle"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

// reminders reports what became of the reminders that were live at the previous compaction. left is the event through
// which that one had dropped groups.
func (in Inputs) reminders(left eventlog.Seq, after Projected) lifecycle.ReminderReport {
	var out lifecycle.ReminderReport
	all := in.Conversation.Reminders()
	before := reduce.Fates(all, in.Conversation.Turns(), left)
	for i, fate := range reduce.Fates(all, in.Conversation.Turns(), after.Through()) {
		r := all[i]
		gone := before[i] != reduce.ReminderLive && r.Seq <= left
		switch {
		case gone: // an earlier compaction reported it
		case fate == reduce.ReminderExpired:
			out.Expired = append(out.Expired, r.Name())
		case fate == reduce.ReminderDeduped:
			out.Deduped = append(out.Deduped, r.Name())
		case fate == reduce.ReminderFolded:
			out.Compacted = append(out.Compacted, r.Name())
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

// Known says how far the watchers of a session were informed of what became of its reminders: it has the greatest
// head, turn and collapsed event of all contexts recorded so far.
type Known struct {
	AsOf      eventlog.Seq
	Turns     uint32
	Collapsed eventlog.Seq
}

// ReminderNews lists what became of reminders since Known. Over the life of a session each reminder is
// listed once.
type ReminderNews struct {
	Expired, Deduped, Folded []reduce.Reminder
	// Decremented counts the reminders that stay and have fewer turns to live than at Known.
	Decremented int
}

// ReminderNews compares a projection with what the watchers know. It returns the news and what they know
// after it. A projection of an earlier event than the newest known has no news.
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
		case fate == reduce.ReminderDeduped:
			news.Deduped = append(news.Deduped, r)
		case fate == reduce.ReminderFolded:
			news.Folded = append(news.Folded, r)
		case r.TTLTurns != nil && now.Turns > max(r.Turn, known.Turns):
			news.Decremented++
		}
	}
	return news, now
}
