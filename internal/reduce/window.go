package reduce

import (
	"fmt"
	"slices"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
)

// window drops the oldest groups as a leading run when the dialogue is over
// its limits or the budget. The digest names their calls, and quotes the newest
// summary that covers a part of them.
type window struct {
	policy   Window
	collapse Collapse
	digests  *digestWriter
	// retention knows which results nothing may evict.
	retention retention
}

func (window) Name() string { return "dialogue_window" }

// Reduce changes nothing: Pipeline.Resume dropped the run of the state before any other
// reducer ran, so that what those save does not change what a digest is measured against.
func (w window) Reduce(v View, _ State) (View, Step) {
	d, _ := v.Digest()
	return v, Step{
		Touched: d.Groups,
		Note: fmt.Sprintf("dropped %d groups with %d calls, through event %d; their digest takes %d tokens for %d",
			d.Groups, d.Calls, d.Through, d.Tokens, d.RawTokens),
	}
}

// Free implements freer. It extends the run until enough tokens are freed. It ends where
// the newest summary ends if nearly as much is freed by then, so that the summary covers
// all that is dropped.
func (w window) Free(v View, s State, d demand) State {
	const nearly = 0.95
	b := d.Budget
	summary := w.summary(v, d)
	prose := w.digests.gauge.Text(summary.quote())
	over, through := w.overLimits(v, b)
	if d.Tokens > over {
		through = max(through, w.cut(v, d, prose))
	}
	if summary.Through > s.CollapsedThrough && (d.ToSummary || w.covers(v, d, summary, through, nearly)) {
		through = summary.Through
	}
	if d.ToSummary && through != summary.Through || through <= s.CollapsedThrough {
		return s
	}
	s.CollapsedThrough, s.CollapsedFor = through, w.sizeFor(b, prose)
	s.LateAfter = max(s.LateAfter, v.lateAfter(d.KeepTurns))
	s.TextClips = slices.Concat(s.TextClips, w.clipStanding(v, b, through, s.TextClips))
	if summary.Through <= through && summary.ID != "" && w.digests.succeeds(summary, s.Summary) {
		s.Summary, s.SummaryTokens = summary.ID, 0
	}
	return s
}

// summary is the newest that covers no spared turn and that fits.
func (w window) summary(v View, d demand) Summary {
	return w.digests.summaries.newest(v.beforeTurns(d.KeepTurns), w.digests.proseLimit(d.Budget), w.digests.gauge)
}

// covers reports whether a run that ends where the summary does frees at least a part
// of what one through an event would.
func (w window) covers(v View, d demand, s Summary, through eventlog.Seq, part float64) bool {
	return w.frees(v, d, s.Through) >= fraction(w.frees(v, d, through), part)
}

// frees is the size of the groups that are dropped on a demand with a run through an event.
func (w window) frees(v View, d demand, through eventlog.Seq) uint64 {
	var sum uint64
	stay, lateAfter := w.beside(d.Budget), v.lateAfter(d.KeepTurns)
	for i := range v.items {
		if it := &v.items[i]; it.group.collapses(through) && it.group.late <= lateAfter && !v.protectsIn(it.group) {
			sum += stay.frees(it)
		}
	}
	return sum
}

// beside knows what stays beside a run as it grows: the newest standing text of each name,
// the newest words of a human, and a note after them.
type beside struct {
	human    *item
	standing map[string]uint64 // tokens, by name
	note     uint64
	limit    uint64 // of what the runtime put in
}

func (w window) beside(b budget.Budget) beside {
	return beside{standing: map[string]uint64{}, limit: b.Share(standingShare)}
}

// frees is how much more is dropped when the run takes an item in: that which stayed in
// place of it, and what is clipped of it.
func (s *beside) frees(it *item) uint64 {
	freed, g := it.tokens, it.group
	if g.Kind == KindUser {
		freed, s.note = freed+s.note, 0
	}
	switch stays := min(it.tokens, s.limit); {
	case g.Standing != "":
		if g.isLive() {
			stays = it.tokens
		}
		freed += s.standing[g.Standing] - stays
		s.standing[g.Standing] = stays
	case g.Human == 0 && g.Kind == KindUser:
		s.note = stays
		freed -= stays
	case g.Human > 0 && (s.human == nil || s.human.group.Human < g.Human):
		freed -= it.tokens
		if s.human != nil {
			freed += s.human.tokens
		}
		s.human = it
	}
	return freed
}

// standingShare is the most of the target that those texts take which the runtime put in
// and which stay once the groups around them are dropped.
const standingShare = 0.10

// clipStanding gives the limits, beside those that there are, at which what the runtime
// put in and stays beside a run through an event keeps to its share.
func (w window) clipStanding(v View, b budget.Budget, through eventlog.Seq, before []Clip) []Clip {
	var kept []*Group // nil where a newer one of the name came
	var note *Group
	newest := map[string]int{} // in kept, by name
	for i := range v.items {
		g := v.items[i].group
		if !g.collapses(through) {
			continue
		}
		if g.Kind == KindUser {
			note = nil
		}
		switch {
		case g.isLive():
		case g.Standing != "":
			if old, ok := newest[g.Standing]; ok {
				kept[old] = nil
			}
			newest[g.Standing] = len(kept)
			kept = append(kept, g)
		case g.Kind == KindUser && g.Human == 0:
			note = g
		}
	}
	if note != nil {
		kept = append(kept, note)
	}
	kept = slices.DeleteFunc(kept, func(g *Group) bool { return g == nil })
	level := max(clipLevel(kept, clipLimits{}, b.Share(standingShare)), clipFloor)
	limits := limitsOf(before)
	var clips []Clip
	for _, g := range kept {
		if limit := limits.at(g.First); g.Tokens > level && (limit == 0 || level < limit) {
			clips = append(clips, clipsOf(g, level)...)
		}
	}
	return clips
}

// excess is the size of what must be dropped for the policy's own limits, or by how much
// results exceed their cap. Stubs count for that cap, too, until their groups are dropped;
// what nothing may evict does not, because dialogue would be dropped for it. Like a forced cut
// it goes down to a fraction of the cap, so that the next is turns away.
func (w window) excess(v View, b budget.Budget) uint64 {
	excess, _ := w.overLimits(v, b)
	if limit, ok := b.Caps[budget.TierToolResults]; ok {
		if used := v.TierTokens()[budget.TierToolResults] - w.retention.heldTokens(v); used > limit {
			excess = max(excess, used-fraction(limit, w.collapse.To))
		}
	}
	return excess
}

// overLimits is the size of the oldest groups that must be dropped where the dialogue
// exceeds the policy's own limits, and the event through which they are. At least half of
// a limit stays, but for the group that takes the dialogue under it. The dialogue is what
// a run may still take: all but the anchor, what is pinned and what is beside the digest.
func (w window) overLimits(v View, b budget.Budget) (excess uint64, through eventlog.Seq) {
	if w.policy.MaxTurns == 0 && w.policy.MaxTokens == 0 {
		return 0, 0
	}
	turns, tokens := uint32(0), uint64(0)
	for i := range v.items {
		if it := &v.items[i]; w.inDialogue(v, it) {
			tokens += it.tokens
			if it.group.Kind == KindTurn {
				turns++
			}
		}
	}
	most, limit := w.policy.MaxTurns, w.policy.MaxTokens
	overTurns, overTokens := most > 0 && turns > most, limit > 0 && tokens > limit
	stay := w.beside(b)
	for i := range w.newest(v) {
		it := &v.items[i]
		if !w.inDialogue(v, it) {
			continue
		}
		more := overTurns && turns > most-most/2 || overTokens && (tokens > limit || tokens-min(it.tokens, tokens) >= limit-limit/2)
		if !more || v.lastTurn()-it.group.Turn < w.collapse.KeepLastTurns {
			break
		}
		freed := stay.frees(it)
		excess, tokens, through = excess+freed, tokens-min(freed, tokens), it.group.First
		if it.group.Kind == KindTurn {
			turns--
		}
	}
	return excess, through
}

func (w window) inDialogue(v View, it *item) bool {
	return !it.group.Anchor && !it.group.Pinned && it.group.First > v.digest.Through && !v.protectsIn(it.group)
}

// sizeFor is the target whose shares a digest is written for, beside a summary of
// so many tokens.
func (w window) sizeFor(b budget.Budget, prose uint64) uint64 {
	if w.policy.MaxTokens > 0 {
		b.Target = min(b.Target, w.policy.MaxTokens)
	}
	return w.digests.sizeFor(b, prose)
}

// room is by how much the digest may grow, with a summary of so many tokens in it.
func (w window) room(v View, b budget.Budget, prose uint64) uint64 {
	d, _ := v.Digest()
	most := w.digests.most(w.sizeFor(b, prose)) + prose
	return most - min(d.Tokens, most)
}

// cut finds the event through which groups must be dropped to meet the demand, with the largest
// digest that may replace them counted in, a summary of so many tokens included. The newest turns are
// spared as long as that is enough to come under the target, and the newest one always. A demand for
// everything there is spares that alone.
func (w window) cut(v View, d demand, prose uint64) eventlog.Seq {
	need := d.Tokens
	if need > 0 {
		need += w.room(v, d.Budget, prose)
	}
	var through eventlog.Seq
	var freed uint64
	stay, lateAfter := w.beside(d.Budget), v.lateAfter(d.KeepTurns)
	for i, newest := 0, w.newest(v); i < newest && freed < need; i++ {
		it := &v.items[i]
		if it.group.Anchor || it.group.Pinned || it.group.late > lateAfter || v.protectsIn(it.group) {
			continue
		}
		recent := v.lastTurn()-it.group.Turn < d.KeepTurns
		if recent && d.Tokens < v.Tokens() && v.Tokens()-freed <= d.Budget.Target {
			break
		}
		freed += stay.frees(it)
		through = max(through, it.group.First)
	}
	return through
}

// newest is the index of the group that a cut always spares, with what comes after it: the newest turn,
// or what a human said since, unless that turn has calls: no model has seen their results.
func (w window) newest(v View) int {
	human := -1
	for i := v.Len() - 1; i >= 0; i-- {
		switch g := v.items[i].group; {
		case g.Kind == KindTurn && (human < 0 || len(g.Calls) > 0 && !g.Pinned):
			return i
		case g.Kind == KindTurn:
			return human
		case g.Human > 0 && human < 0:
			human = i
		}
	}
	if human >= 0 {
		return human
	}
	return v.Len() - 1
}

// newestEnds are the events through which a run takes what a cut spares: the newest
// turn, then all that the runtime put in after it but the last, then that.
func (w window) newestEnds(v View) []eventlog.Seq {
	var out []eventlog.Seq
	for _, i := range []int{w.newest(v), v.Len() - 2, v.Len() - 1} {
		if i >= w.newest(v) && i >= 0 {
			out = append(out, v.items[i].group.First)
		}
	}
	return out
}

// fraction is a part of n, rounded down alike on every machine.
func fraction(n uint64, part float64) uint64 {
	return budget.Budget{Target: n}.Share(part)
}
