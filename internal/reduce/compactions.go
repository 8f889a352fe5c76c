package reduce

import (
	"sort"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Decided has the decisions of callers' compactions of a session. They hold under every policy and budget: a
// reduction may drop more, but shows nothing that they dropped. Nil is no decisions.
type Decided struct {
	// Seq is the event of the newest compaction.
	Seq eventlog.Seq
	eventlog.CompactionDecision
	// Summary is the text that replaces groups up to its Through; zero if there is none.
	Summary Summary

	// before are the earlier decisions, which hold as well; nil if there are none. wider is the newest of them with a
	// larger reach. jump is one that several steps of wider lead to, so that reaching takes few steps; steps is how
	// many lead to the last.
	before, wider, jump *Decided
	steps               int
	// reach and late are Through and LateAfter of the newest compaction itself; those of Decision combine
	// all compactions.
	reach, late eventlog.Seq
	kept        map[eventlog.Seq]bool // first events of the groups that the newest compaction keeps
	// keptByAll are those of kept that each earlier compaction keeps or does not reach.
	keptByAll map[eventlog.Seq]bool
	// furthest is the largest reach of all compactions.
	furthest eventlog.Seq
	masked   places
	// maskedThrough is the newest event with a masked result.
	maskedThrough eventlog.Seq
}

// newDecided adds the compaction at seq to the earlier decisions. What these dropped stays dropped, whatever the
// compaction says. A compaction covers only events before itself. It never drops the group with a human's newest
// words before it, which begins at event human; 0 if there is no such group.
func newDecided(seq eventlog.Seq, c *eventlog.Compaction, before *Decided, human eventlog.Seq) *Decided {
	d := &Decided{Seq: seq, CompactionDecision: *c.Decision, before: before, kept: map[eventlog.Seq]bool{human: true}}
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
	d.chain()
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

// chain sets wider, jump and steps.
func (d *Decided) chain() {
	d.wider = d.before.reaching(d.reach + 1)
	d.jump = d.wider
	if w := d.wider; w != nil {
		d.steps = w.steps + 1
		if far := w.jump; far != nil && far.jump != nil && w.steps-far.steps == far.steps-far.jump.steps {
			d.jump = far.jump
		}
	}
}

// reaching returns the newest of these decisions that reaches an event; nil if none does.
func (d *Decided) reaching(event eventlog.Seq) *Decided {
	for d != nil && d.reach < event {
		if d.jump != nil && d.jump.reach < event {
			d = d.jump
		} else {
			d = d.wider
		}
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

// keeps reports whether the decisions allow a group of the run to stay in view. Each compaction that reaches the
// group must keep it, or be older than a human's words in it, or allow it because of a late result.
func (d *Decided) keeps(g *Group) bool {
	if g.First > d.through() {
		return true
	}
	for d = d.reaching(g.First); d != nil; d = d.before.reaching(g.First) {
		late := d.late > 0 && g.late > d.late
		switch {
		case g.Human > d.Seq, d.keptByAll[g.First]:
			return true // so do the earlier ones
		case !d.kept[g.First] && !late:
			return false
		}
	}
	return true
}

// split moves the groups that the decisions drop from stay to gone.
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

// Drops reports whether the decisions drop a group.
func (d *Decided) Drops(g *Group) bool {
	return d != nil && g.collapses(d.Through) && !d.keeps(g)
}

// Masks reports whether the decisions stub a result.
func (d *Decided) Masks(at eventlog.Place) bool { return d != nil && d.masked.has(at) }

// alone returns the state with only the run of the decisions.
func (d *Decided) alone(s State) State {
	s.CollapsedThrough, s.LateAfter, s.Summary = d.through(), 0, d.summary().ID
	if d != nil {
		s.CollapsedFor, s.LateAfter = min(s.CollapsedFor, d.DigestTokens), d.LateAfter
	}
	return s
}

// shown returns the state that a view really shows. It has no run if the view does not collapse it because the record
// would be larger than the groups.
func (d *Decided) shown(s State, v View) State {
	if v.digest.Through < s.CollapsedThrough {
		return d.alone(s)
	}
	return s
}

// applied moves a state forward so that it shows nothing that the decisions drop.
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

// From returns the state that a reduction really starts from: it shows no group that a caller's decision drops.
func (p *Pipeline) From(s State) State {
	return p.digests.decided.applied(s, p.digests.summaries)
}

// Compactions are the callers' compactions in the part of a log that was read. The zero value is for an empty log.
type Compactions struct {
	// inForce are the decisions up to each compaction that was not undone, oldest first.
	inForce []*Decided
	// void are the events at which a compaction was in force that was undone later.
	void eventlog.Ranges
}

// Read reads the next event of the log. After it, InForce is right, but not what the compactions keep: that also
// depends on the groups.
func (all *Compactions) Read(e eventlog.Event) { all.read(e, 0) }

// read is Read with the first event of the group that has a human's newest words.
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

// InForce returns the events of the compactions that were not undone, oldest first.
func (all *Compactions) InForce() []eventlog.Seq {
	out := make([]eventlog.Seq, len(all.inForce))
	for i, d := range all.inForce {
		out[i] = d.Seq
	}
	return out
}

// undo undoes every compaction from an event on.
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
	clear(all.inForce[n:])
	all.inForce = all.inForce[:n]
}

func (all *Compactions) newest() *Decided {
	if len(all.inForce) == 0 {
		return nil
	}
	return all.inForce[len(all.inForce)-1]
}

// Decided returns what the callers' compactions of the log decided; nil if none is in force.
func (c *Conversation) Decided() *Decided { return c.compactions.newest() }

// VoidSince returns the start of the stretch around event at in which a compaction was in force that was undone
// later; 0 if there is none. A state that was recorded in such a stretch may depend on that compaction and must not
// be used.
func (c *Conversation) VoidSince(at eventlog.Seq) eventlog.Seq {
	return c.compactions.void.Around(at).From
}
