package reduce

import (
	"fmt"
	"slices"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
)

// window drops the oldest groups, as a run, when the dialogue is over its limits or the budget. The digest lists
// their calls, and quotes the newest summary that covers a part of them.
type window struct {
	policy   Window
	collapse Collapse
	digests  *digestWriter
	// retention says which results may not be evicted.
	retention retention
}

func (window) Name() string { return "dialogue_window" }

// Reduce changes nothing, because Pipeline.Resume dropped the run before any other reducer ran. So a digest is
// compared with the dropped groups in full, not with what other reducers would have left of them.
func (w window) Reduce(v View, _ State) (View, Step) {
	d, _ := v.Digest()
	return v, Step{
		Touched: d.Groups,
		Note: fmt.Sprintf("dropped %d groups with %d calls, through event %d; their digest takes %d tokens for %d",
			d.Groups, d.Calls, d.Through, d.Tokens, d.RawTokens),
	}
}

// Free implements freer. It extends the run until enough tokens are freed. If nearly as much is freed with a run that
// ends where the newest summary ends, the run ends there, so that the summary covers all that is dropped.
func (w window) Free(v View, s State, d demand) State {
	const nearly = 0.95
	b := d.Budget
	summary := w.summary(v, d)
	prose := w.digests.gauge.Text(summary.quote())
	over, through := w.overLimits(v, b)
	if d.Tokens > over {
		through = max(through, w.cut(v, d, prose))
	}
	if summary.Through > s.CollapsedThrough && w.covers(v, d, summary, through, nearly) {
		through = summary.Through
	}
	if through <= s.CollapsedThrough {
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

// summary returns the newest summary that fits and covers no spared turn.
func (w window) summary(v View, d demand) Summary {
	return w.digests.summaries.newest(v.beforeTurns(d.KeepTurns), w.digests.proseLimit(d.Budget), w.digests.gauge)
}

// covers reports whether a run that ends where summary s ends frees at least a given part of what a run through an
// event would free.
func (w window) covers(v View, d demand, s Summary, through eventlog.Seq, part float64) bool {
	return w.frees(v, d, s.Through) >= fraction(w.frees(v, d, through), part)
}

// frees returns how many tokens a run through an event would free under a demand.
func (w window) frees(v View, d demand, through eventlog.Seq) uint64 {
	var sum uint64
	stay, lateAfter := w.besideDigest(d.Budget), v.lateAfter(d.KeepTurns)
	for i := range v.items {
		if it := &v.items[i]; it.group.collapses(through) && it.group.late <= lateAfter && !v.protectsIn(it.group) {
			sum += stay.frees(it)
		}
	}
	return sum
}

// besideDigest tracks which groups of a growing run stay next to its digest: the newest standing text of each name, a
// human's newest words, and the newest injected message if no user's message came after it.
type besideDigest struct {
	human    *item
	standing map[string]uint64 // tokens, by name
	note     uint64            // tokens of the injected message
	limit    uint64            // the size to which a standing or injected text is clipped
}

func (w window) besideDigest(b budget.Budget) besideDigest {
	return besideDigest{standing: map[string]uint64{}, limit: b.Share(standingShare)}
}

// frees returns how many more tokens are freed if the run includes an item. An item that itself stays next to the
// digest frees the item that it replaces there, and what is clipped of it.
func (s *besideDigest) frees(it *item) uint64 {
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

// standingShare is the largest part of the target for the standing and injected texts that stay next to the
// digest.
const standingShare = 0.10

// clipStanding returns new clips, besides those in before, that limit the standing and injected texts next to the
// digest of a run through an event to standingShare.
func (w window) clipStanding(v View, b budget.Budget, through eventlog.Seq, before []Clip) []Clip {
	var kept []*Group // nil where a newer group of the same name follows
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

// excess returns how many tokens must be dropped for the policy's own limits or for the cap on results, whichever is
// more. Stubs count for the cap until their groups are dropped. Results that may not be evicted do not count, because
// dialogue would be dropped for them. Like a forced cut it aims at a fraction of the cap, so that the next one is
// many turns away.
func (w window) excess(v View, b budget.Budget) uint64 {
	excess, _ := w.overLimits(v, b)
	if limit, ok := b.Caps[budget.TierToolResults]; ok {
		if used := v.TierTokens()[budget.TierToolResults] - w.retention.heldTokens(v); used > limit {
			excess = max(excess, used-fraction(limit, w.collapse.To))
		}
	}
	return excess
}

// overLimits returns how many tokens must be dropped if the dialogue exceeds the policy's own limits, and the event
// through which the run then ends. The dialogue is all that a longer run could drop: everything except the anchor,
// pinned groups, and groups next to the digest. A cut leaves at least half of a limit, or less by the size of one
// group.
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
	stay := w.besideDigest(b)
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

// sizeFor returns the target whose shares limit a digest that has a summary of prose tokens.
func (w window) sizeFor(b budget.Budget, prose uint64) uint64 {
	if w.policy.MaxTokens > 0 {
		b.Target = min(b.Target, w.policy.MaxTokens)
	}
	return w.digests.sizeFor(b, prose)
}

// room returns by how many tokens the digest may grow if it has a summary of prose tokens.
func (w window) room(v View, b budget.Budget, prose uint64) uint64 {
	d, _ := v.Digest()
	most := w.digests.most(w.sizeFor(b, prose)) + prose
	return most - min(d.Tokens, most)
}

// cut returns the event through which groups must be dropped to meet the demand. It assumes the largest digest that
// may replace them, with a summary of prose tokens. It spares the newest d.KeepTurns turns if the target can be met
// without them, and always the newest turn. A demand for the whole view spares only that one.
func (w window) cut(v View, d demand, prose uint64) eventlog.Seq {
	need := d.Tokens
	if need > 0 {
		need += w.room(v, d.Budget, prose)
	}
	var through eventlog.Seq
	var freed uint64
	stay, lateAfter := w.besideDigest(d.Budget), v.lateAfter(d.KeepTurns)
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

// newest returns the index of the first group that a cut always spares: the newest turn, because no model has seen
// the results of its calls yet, or, if it made no calls, what a human said after it.
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

// newestEnds returns the ends of runs that drop, one after the other, what a cut spares: turns before the newest whose
// results came late, the newest turn, then the injected messages after it except the last, then the last one.
func (w window) newestEnds(v View) []eventlog.Seq {
	var out []eventlog.Seq
	newest := w.newest(v)
	for _, i := range []int{newest - 1, newest, max(newest, v.Len()-2), v.Len() - 1} {
		if i >= 0 {
			out = append(out, v.items[i].group.First)
		}
	}
	return out
}

// fraction returns a part of n, rounded down in the same way on every machine.
func fraction(n uint64, part float64) uint64 {
	return budget.Budget{Target: n}.Share(part)
}
