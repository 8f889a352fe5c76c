package reduce

import (
	"slices"
	"sort"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
)

// collapse drops the run that shortest finds, with as small a record as the goal needs. The runs are in order. Without a
// text of the caller's the view must become smaller.
func (d *decider) collapse(runs []eventlog.Seq, text Summary) (c *eventlog.Compaction, nothing string) {
	size := d.sizeFor(text)
	through := d.shortest(runs, size, text)
	best := d.try(through, size, text)
	for ; !d.sparesIn(best.View) && size < d.start.State.CollapsedFor; best = d.try(through, size, text) {
		size = min(size*2, d.start.State.CollapsedFor)
	}
	best = d.smaller(best, through, size, text)
	best = d.larger(best, through, size, text)
	if text.ID == "" && best.View.Tokens() >= d.start.View.Tokens() && !d.settles(best, through) {
		return nil, d.noGain()
	}
	return d.compaction(best.State, best.View, text), ""
}

// shortest returns the first run that brings the view down to the goal, or the last run if none does. It tries longer
// and longer runs, which reads each group once. Only after maxSteps runs does it search the rest by halves, because
// most steps of that read all groups again. It skips runs that would not be enough even with seven eighths of the
// record of the run tried before. A longer run's record is seldom smaller than that; if it is, the run found is a few
// groups too long.
func (d *decider) shortest(runs []eventlog.Seq, size uint64, text Summary) eventlog.Seq {
	last := len(runs) - 1
	if d.ask.Goal == 0 {
		return runs[last]
	}
	after := d.tokensAfter(runs)
	var beside uint64 // what the last try showed besides what comes after its run
	next := 0
	for range maxSteps {
		for next < last && after[next]+beside-beside/8 > d.goal() {
			next++
		}
		v := d.try(runs[next], size, text).View
		if next == last || d.reached(v) {
			return runs[next]
		}
		beside = v.Tokens() - min(after[next], v.Tokens())
		next++
	}
	left := runs[next:last]
	return runs[next+sort.Search(len(left), func(i int) bool { return d.reached(d.try(left[i], size, text).View) })]
}

// maxSteps is how many runs shortest tries in order.
const maxSteps = 8

// tokensAfter returns how much of the start comes after each run.
func (d *decider) tokensAfter(runs []eventlog.Seq) []uint64 {
	out := make([]uint64, len(runs))
	items, sum := d.start.View.items, uint64(0)
	for i, run := range slices.Backward(runs) {
		for ; len(items) > 0 && items[len(items)-1].group.First > run; items = items[:len(items)-1] {
			sum += items[len(items)-1].tokens
		}
		out[i] = sum
	}
	return out
}

// enough reports whether a view is smaller than the one before, and has come down to the goal if there is
// one.
func (d *decider) enough(v View) bool {
	return v.Tokens() < d.start.View.Tokens() && (d.ask.Goal == 0 || d.reached(v))
}

// smaller halves the record's size until the view is small enough. Where the groups that must stay take the
// whole goal by themselves, no record is small enough, and it keeps the size for the goal.
func (d *decider) smaller(best Result, through eventlog.Seq, size uint64, text Summary) Result {
	before, least := d.start.View.Tokens(), best
	for size /= 2; !d.enough(best.View) && size >= leastDigest; size /= 2 {
		now := d.try(through, size, text)
		if !d.sparesIn(now.View) {
			break
		}
		if least = now; d.enough(now.View) || best.View.Tokens() >= before && now.View.Tokens() < before {
			best = now
		}
	}
	if digest := least.View.digest; !d.enough(best.View) && least.View.Tokens()-digest.Tokens+digest.SummaryTokens < d.goal() {
		return least
	}
	return best
}

// larger doubles the record's size while the view stays small enough.
func (d *decider) larger(best Result, through eventlog.Seq, size uint64, text Summary) Result {
	for size *= 2; d.reached(best.View) && best.State.CollapsedFor == size/2 && size <= d.window.sizeFor(d.budget, 0); size *= 2 {
		if now := d.try(through, size, text); d.enough(now.View) {
			best = now
		}
	}
	return best
}

// settles reports whether a result is useful although it frees nothing more: a run that was dropped under one policy
// and budget becomes a decision for all of them.
func (d *decider) settles(r Result, through eventlog.Seq) bool {
	dropped := d.start.State.CollapsedThrough
	return through == dropped && r.View.digest.Through == dropped && dropped > d.digests.decided.through() && r.View.Tokens() == d.start.View.Tokens()
}

// sizeFor returns the size that the record is written for, by the goal if there is one. It is at least 1, even
// where reminders take the whole target, so that doubling it comes to an end.
func (d *decider) sizeFor(text Summary) uint64 {
	b := d.sized()
	return max(1, d.window.sizeFor(b, d.conv.gauge.Text(text.quote())))
}

// sized returns the budget whose shares limit the record: that of the view, with the goal as its target if that is
// smaller.
func (r *reduction) sized() budget.Budget {
	b := r.budget
	if goal := r.goal(); goal > 0 {
		b.Target = min(b.Target, goal)
	}
	return b
}

// try returns the result of dropping a run with a record written for a size.
func (d *decider) try(through eventlog.Seq, size uint64, text Summary) Result {
	s := d.start.State
	s.CollapsedThrough, s.CollapsedFor, s.LateAfter = through, size, d.lateAfter(d.start)
	if text.ID == "" {
		if ready := d.readyFor(through, size); ready.Through > d.digests.known(s.Summary).Through {
			s.Summary, s.SummaryTokens = ready.ID, 0
		}
		return d.apply(s)
	}
	s.Summary, s.SummaryTokens = text.ID, 0
	defer d.reset(d.digests.decided)
	d.digests.decided = newDecided(d.conv.head+1, d.compaction(s, d.apply(s).View, text), d.digests.decided, d.conv.lastHuman)
	return d.apply(s)
}

// readyFor returns the newest summary by a summarizer that covers no more than a run and fits a record of a size.
func (d *decider) readyFor(through eventlog.Seq, size uint64) Summary {
	limit := d.digests.proseLimit(budget.Budget{Target: size, Caps: d.budget.Caps})
	return d.digests.summaries.newest(through, limit, d.conv.gauge)
}
