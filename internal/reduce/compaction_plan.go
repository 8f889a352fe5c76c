package reduce

import (
	"fmt"
	"slices"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
)

// This file computes callers' compactions. Unlike a reduction's own cuts, which wait until they pay, a cut for which
// a caller asks is made if it frees anything at all.

// Assume makes later reductions behave as if a compaction were the next event of the log.
func (p *Pipeline) Assume(c *eventlog.Compaction) {
	d := p.digests
	d.decided = newDecided(p.conv.head+1, c, p.conv.Decided(), p.conv.lastHuman)
}

// Decide computes the decision of a compaction for which a caller asks. ask.Strategy must not be empty. The decision
// brings the view down to ask.Goal or, if that is 0, as far as possible. With Summarize, text replaces the groups up
// to its Through. If nothing can be done, the compaction is nil and nothing says why.
func (p *Pipeline) Decide(b budget.Budget, s State, ask Ask, text Summary) (c *eventlog.Compaction, nothing string, err error) {
	d, err := p.decide(b, s, ask)
	if err != nil {
		return nil, "", err
	}
	now := d.start.State
	switch ask.Strategy {
	case Mask:
		c, nothing = d.mask()
	case Summarize:
		if decided := p.digests.decided; text.ID == decided.summary().ID && now.CollapsedThrough <= decided.through() {
			nothing = "the summary is in force already"
		} else {
			c, nothing = d.collapse(d.runsFrom(max(text.Through, now.CollapsedThrough)), text)
		}
	default:
		if runs := d.runs(); len(runs) == 0 {
			nothing = d.whyNone()
		} else if c, nothing = d.collapse(runs, Summary{}); c != nil && d.grows(c, b, s) {
			c, nothing = nil, d.noGain()
		}
	}
	if err := p.ended(); err != nil {
		return nil, "", err
	}
	return c, nothing, nil
}

// decider computes the decision of a compaction.
type decider struct {
	*reduction
	// start is the result of the state before the compaction.
	start Result
}

func (p *Pipeline) decide(b budget.Budget, s State, ask Ask) (*decider, error) {
	r, now, err := p.start(b, s, ask)
	now.State = p.digests.decided.shown(now.State, now.View)
	return &decider{r, now}, err
}

// spared returns the last event before the turns that the compaction spares.
func (d *decider) spared() eventlog.Seq { return d.start.View.beforeTurns(d.keepTurns()) }

// goal returns the size that the view should come down to; 0 is as small as possible.
func (r *reduction) goal() uint64 {
	if r.ask.Goal == 0 {
		return 0
	}
	return max(1, r.ask.Goal-min(r.ask.Goal, r.ask.Reserved))
}

// reached reports whether a view has come down to the goal, if there is one.
func (d *decider) reached(v View) bool { return d.ask.Goal > 0 && v.Tokens() <= d.goal() }

func (d *decider) mask() (c *eventlog.Compaction, nothing string) {
	before := d.start.View.Tokens()
	demand := d.demand(before - min(d.goal(), before))
	demand.AnySize, demand.KeepTurns = true, d.spareTurns()
	e := d.start.View.Editor()
	d.retention.stubOldest(e, d.start.State, demand)
	if e.Tokens() >= before {
		return nil, d.whyNotMasked()
	}
	return d.compaction(d.start.State, e.View(), Summary{}), ""
}

// noGain says that a run is not dropped because its record would be as large.
func (d *decider) noGain() string {
	return "what may be dropped before " + d.spares() + " takes no more than the record that would replace it"
}

// grows reports whether a decision would make the caller's own context larger. A run that was dropped under its
// budget and state alone may have a smaller record than the decision's.
func (d *decider) grows(c *eventlog.Compaction, b budget.Budget, s State) bool {
	defer d.reset(d.digests.decided)
	d.Assume(c)
	after, err := d.Current(b, s, d.ask)
	return err == nil && after.View.Tokens() > d.start.View.Tokens()
}

// reset takes back an assumed decision.
func (p *Pipeline) reset(decided *Decided) { p.digests.decided = decided }

// runs returns the ends of all runs that spare the newest turns and are longer than the run in force. If there are
// none, it returns the run in force, but only if its record can become smaller, or if it was dropped under one policy
// and budget alone.
func (d *decider) runs() []eventlog.Seq {
	spared, dropped := d.spared(), d.start.State.CollapsedThrough
	var out []eventlog.Seq
	for i := range d.start.View.items {
		if g := d.start.View.items[i].group; g.collapses(spared) && g.First > dropped && !d.start.View.protectsIn(g) {
			out = append(out, g.First)
		}
	}
	smaller := d.ask.Goal > 0 && d.start.State.CollapsedFor > d.sizeFor(Summary{})
	if len(out) == 0 && dropped > 0 && (smaller || dropped > d.digests.decided.through()) {
		out = append(out, dropped)
	}
	return out
}

// runsFrom returns the end of a run that must be dropped. With a goal it also returns the ends of longer runs that
// spare the newest turns, because the first run may not be enough for the goal.
func (d *decider) runsFrom(first eventlog.Seq) []eventlog.Seq {
	out := []eventlog.Seq{first}
	if d.ask.Goal == 0 {
		return out
	}
	for _, longer := range d.runs() {
		if longer > first {
			out = append(out, longer)
		}
	}
	return out
}

// sparesIn reports whether a view still has all groups of the spared turns that the start has. An earlier
// compaction that spared fewer turns may have a run that reaches into them: how many user messages of that
// run stay depends on the size of its record.
func (d *decider) sparesIn(v View) bool {
	spared := d.spared()
	here := among(v.Groups())
	return !slices.ContainsFunc(d.start.View.items, func(it item) bool { return it.group.First > spared && !here(it.group) })
}

// spareTurns returns how many of the newest turns a compaction spares; spares says it in words.
func (r *reduction) spareTurns() uint32 { return max(r.keepTurns(), 1) }

func (r *reduction) spares() string {
	if n := r.spareTurns(); n > 1 {
		return fmt.Sprintf("the last %d turns", n)
	}
	return "the last turn"
}

// compaction returns the event that makes the decisions in a state and a view hold for the whole session.
func (d *decider) compaction(s State, v View, text Summary) *eventlog.Compaction {
	standing := d.digests.decided
	out := &eventlog.CompactionDecision{}
	if text.ID == "" {
		s = standing.shown(s, v)
	}
	if s.CollapsedThrough > 0 {
		s.CollapsedFor = max(s.CollapsedFor, 1) // a record for a target of 0 is the last resort of one budget
		out.Through, out.DigestTokens, out.LateAfter, out.Kept = s.CollapsedThrough, s.CollapsedFor, s.LateAfter, d.digests.kept(s)
		if text.ID == "" {
			text = d.digests.known(s.Summary)
		}
	}
	if text.ID != "" {
		out.SummaryID, out.SummaryThrough, out.SummaryBy = text.ID, min(text.Through, out.Through), text.By
	}
	masked := map[eventlog.Place]bool{}
	for i := range v.items {
		g := v.items[i].group
		if v.lastTurn()-g.Turn < d.spareTurns() {
			break // a result stubbed there was the last resort of one policy and budget
		}
		for c := range g.Calls {
			call := &g.Calls[c]
			if edit, ok := v.Edit(i, call.Result, 0); ok && edit.Kind == Stubbed {
				masked[call.Place()] = true
			}
		}
	}
	if standing != nil {
		for at := range standing.masked.all() { // another policy may show a group that this view does not
			masked[at] = masked[at] || at.Seq > out.Through
		}
	}
	for at, is := range masked {
		if is {
			out.Masked = append(out.Masked, at)
		}
	}
	slices.SortFunc(out.Masked, eventlog.Place.Compare)
	return &eventlog.Compaction{Summary: text.Text, Decision: out}
}

// whyNone says why no group can be dropped.
func (d *decider) whyNone() string {
	v, s, spared := d.start.View, d.start.State, d.spared()
	pinned, protected, movable := 0, 0, 0
	for i := range v.items {
		switch g := v.items[i].group; {
		case g.Anchor:
		case g.Pinned && (g.First <= spared || spared == 0):
			pinned++
		case g.First <= spared && v.protectsIn(g):
			protected++
			movable++
		case !g.Pinned:
			movable++
		}
	}
	switch {
	case movable == 0 && pinned > 0:
		return "everything but the system prompt and the first user message is pinned"
	case movable == 0 && s.CollapsedThrough == 0:
		return "the log holds nothing but the system prompt and the first user message"
	case protected > 0:
		return "everything before " + d.spares() + " is protected"
	case pinned > 0:
		return "everything before " + d.spares() + " is pinned"
	case s.CollapsedThrough > 0:
		return "everything before " + d.spares() + " is dropped already"
	default:
		return "there is no group before " + d.spares()
	}
}

// whyNotMasked says why no result can be masked.
func (d *decider) whyNotMasked() string {
	v := d.start.View
	var left sparedResults
	masked, pinned, small, results := 0, 0, 0, 0
	for i := range v.items {
		g := v.items[i].group
		if v.lastTurn()-g.Turn < d.spareTurns() {
			break
		}
		for c := range g.Calls {
			call := &g.Calls[c]
			edit, edited := v.Edit(i, call.Result, 0)
			switch {
			case call.Interrupted:
				continue
			case edited && edit.Kind == Stubbed:
				masked++
			case g.Pinned:
				pinned++
			case !d.retention.spares(v, g, call, d.retention.rules.rule(call.Name, d.ended), true, &left):
				small++
			}
			results++
		}
	}
	if results == 0 {
		return "there is no tool result before " + d.spares()
	}
	return fmt.Sprintf("of the %d results before %s %d are masked already, %d are pinned, %d are of tools that are never evicted, %d are named by roots, %d are errors and %d are no larger than a pointer",
		results, d.spares(), masked, pinned, left.never, left.rooted, left.errors, small)
}
