package reduce

import (
	"slices"
	"sort"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Decided is what callers' compactions decided for a session, whatever the policy and
// the budget: every reduction shows at most what remains. Nil decides nothing.
type Decided struct {
	// Seq is the compaction that says so.
	Seq eventlog.Seq
	eventlog.Decision
	// Summary is the text that replaces groups up to its Through; zero if none does.
	Summary Summary

	// before is what was decided before it, which holds as well; nil if nothing was.
	before *Decided
	// reach and late are its own Through and LateAfter; those of the Decision are those of all.
	reach, late eventlog.Seq
	kept        map[eventlog.Seq]bool
	// keptByAll are those of kept that all before it keep or do not reach.
	keptByAll map[eventlog.Seq]bool
	// furthest is the greatest reach of it and those before.
	furthest eventlog.Seq
	masked   places
	// maskedThrough is the last of the events of what is masked.
	maskedThrough eventlog.Seq
}

// newDecided reads the compaction at seq, after what was decided before it: what is dropped
// stays dropped, whatever it says. It reaches no event that is not before itself, and never
// the group of what a human said last before it, which begins at human; 0 is none.
func newDecided(seq eventlog.Seq, c *eventlog.Compaction, before *Decided, human eventlog.Seq) *Decided {
	d := &Decided{Seq: seq, Decision: *c.Decision, before: before, kept: map[eventlog.Seq]bool{human: true}}
	d.Through = min(d.Through, seq-1)
	d.LateAfter = min(d.LateAfter, seq-1)
	d.reach, d.late = d.Through, d.LateAfter
	d.SummaryThrough = min(d.SummaryThrough, d.Through)
	if d.SummaryID != "" {
		d.Summary = Summary{ID: d.SummaryID, Through: d.SummaryThrough, By: d.SummaryBy, Text: c.Summary}
	}
	for _, first := range d.Kept {
		d.kept[first] = true
	}
	d.keptByAll, d.furthest = d.kept, d.reach
	if before != nil {
		d.keptByAll, d.furthest = map[eventlog.Seq]bool{}, max(d.reach, before.furthest)
		for first := range d.kept {
			if first > before.furthest || before.keptByAll[first] {
				d.keptByAll[first] = true
			}
		}
	}
	for _, at := range d.Masked {
		d.maskedThrough = max(d.maskedThrough, at.Seq)
	}
	if before == nil {
		d.masked = places(nil).with(d.Masked)
		return d
	}
	d.masked, d.maskedThrough = before.masked.with(d.Masked), max(d.maskedThrough, before.maskedThrough)
	if d.Through < before.Through {
		d.Through, d.DigestTokens, d.LateAfter = before.Through, before.DigestTokens, before.LateAfter
	}
	if d.Summary.Through < before.Summary.Through {
		d.Summary = before.Summary
	}
	return d
}

func (d *Decided) through() eventlog.Seq {
	if d == nil {
		return 0
	}
	return d.Through
}

func (d *Decided) summary() Summary {
	if d == nil {
		return Summary{}
	}
	return d.Summary
}

// keeps reports whether a group may stay where the run through it is dropped: one that each
// compaction kept, or in which a human said something since or a result is late enough.
func (d *Decided) keeps(g *Group) bool {
	if g.First > d.through() || d.keptByAll[g.First] {
		return true
	}
	for ; d != nil; d = d.before {
		late := d.late > 0 && g.late > d.late
		if g.First <= d.reach && !d.kept[g.First] && g.Human <= d.Seq && !late {
			return false
		}
	}
	return true
}

// split has those of the groups that stay join the gone that were decided to be dropped.
func (d *Decided) split(stay, gone []*Group) (stays, dropped []*Group) {
	if d == nil {
		return stay, gone
	}
	var more []*Group
	for _, g := range stay {
		if d.keeps(g) {
			stays = append(stays, g)
		} else {
			more = append(more, g)
		}
	}
	return stays, inOrder(gone, more)
}

// Drops reports whether a group is dropped by what was decided.
func (d *Decided) Drops(g *Group) bool {
	return d != nil && g.collapses(d.Through) && !d.keeps(g)
}

// Masks reports whether a result is shown as its pointer by what was decided.
func (d *Decided) Masks(at eventlog.Place) bool { return d != nil && d.masked.has(at) }

// alone is a state in which no run is dropped but that of what was decided.
func (d *Decided) alone(s State) State {
	s.CollapsedThrough, s.LateAfter, s.Summary = d.through(), 0, d.summary().ID
	if d != nil {
		s.CollapsedFor, s.LateAfter = min(s.CollapsedFor, d.DigestTokens), d.LateAfter
	}
	return s
}

// shown is a state without a run that a view does not show: one whose record would be
// larger than what it replaces.
func (d *Decided) shown(s State, v View) State {
	if v.digest.Through < s.CollapsedThrough {
		return d.alone(s)
	}
	return s
}

// applied is a state that shows no more than what remains by what was decided.
func (d *Decided) applied(s State, known summaries) State {
	switch {
	case d.through() == 0:
		return s
	case d.Through > s.CollapsedThrough:
		s.CollapsedThrough, s.CollapsedFor, s.LateAfter = d.Through, d.DigestTokens, max(s.LateAfter, d.LateAfter)
	case d.Through == s.CollapsedThrough:
		s.CollapsedFor = min(s.CollapsedFor, d.DigestTokens)
	}
	if d.Summary.ID != s.Summary && d.Summary.Through > 0 && known.byID(s.Summary).Through <= d.Summary.Through {
		s.Summary, s.SummaryTokens = d.Summary.ID, 0
	}
	return s
}

// From is a state as every reduction starts from it: no group is shown that a caller's
// decision drops.
func (p *Pipeline) From(s State) State {
	return p.digests.decided.applied(s, p.digests.summaries)
}

// Compactions are the callers' compactions of a log, as far as it was read. The zero
// value is that of an empty log.
type Compactions struct {
	// inForce are those that were not taken back, oldest first; each is complete.
	inForce []*Decided
	// void are the events at which what was taken back later was in force, as runs in
	// order.
	void eventlog.Ranges
}

// Read takes in the next event of the log. Which compactions are in force then is known,
// and not all that they keep.
func (all *Compactions) Read(e eventlog.Event) { all.read(e, 0) }

// read is Read for who knows where the group of what a human said last begins.
func (all *Compactions) read(e eventlog.Event, human eventlog.Seq) {
	c, ok := e.Body.(*eventlog.Compaction)
	switch {
	case !ok || c.Decision == nil:
	case c.Decision.Undoes > 0:
		all.undo(e.Seq, c.Decision.Undoes)
	default:
		all.inForce = append(all.inForce, newDecided(e.Seq, c, all.newest(), human))
	}
}

// InForce are the events of those that were not taken back, oldest first.
func (all *Compactions) InForce() []eventlog.Seq {
	out := make([]eventlog.Seq, len(all.inForce))
	for i, d := range all.inForce {
		out[i] = d.Seq
	}
	return out
}

// undo takes back every compaction from an event on.
func (all *Compactions) undo(seq, from eventlog.Seq) {
	n := sort.Search(len(all.inForce), func(i int) bool { return all.inForce[i].Seq >= from })
	if n == len(all.inForce) {
		return
	}
	run := eventlog.Range{From: all.inForce[n].Seq, To: seq - 1}
	for last := len(all.void) - 1; last >= 0 && all.void[last].From >= run.From; last-- {
		all.void = all.void[:last]
	}
	all.void = append(all.void, run)
	all.inForce = slices.Clone(all.inForce[:n])
}

func (all *Compactions) newest() *Decided {
	if len(all.inForce) == 0 {
		return nil
	}
	return all.inForce[len(all.inForce)-1]
}

// Decided is what the callers' compactions of the log decided; nil if none is in force.
func (c *Conversation) Decided() *Decided { return c.compactions.newest() }

// VoidSince returns the first event of the run around at in which a compaction was in force
// that was taken back since, 0 if there is none: what was decided there for a policy and a
// budget may rest on it, and holds no more.
func (c *Conversation) VoidSince(at eventlog.Seq) eventlog.Seq {
	return c.compactions.void.Around(at).From
}
