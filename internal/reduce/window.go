package reduce

import (
	"fmt"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
)

// window lets the oldest groups leave as a leading run when the dialogue is over
// its limits or the budget. The digest names their calls, and quotes the newest
// summary that covers a part of them.
type window struct {
	policy  Window
	run     Collapse
	digests *digests
	// atSummary has a cut end where the newest summary does, whatever it frees.
	atSummary bool
}

func (window) Name() string { return "dialogue_window" }

// Reduce shows nothing new: Pipeline.Resume let the run of the state leave before
// any other reducer ran, so that what those save does not change what a digest is
// measured against.
func (w window) Reduce(v View, b budget.Budget, s State) (View, State, Step) {
	if b.Excess > 0 {
		s = w.extend(v, b, s)
	}
	d, _ := v.Digest()
	return v, s, Step{
		Touched: d.Groups,
		Note: fmt.Sprintf("%d groups with %d calls left the front, through event %d; their digest takes %d tokens for %d",
			d.Groups, d.Calls, d.Through, d.Tokens, d.RawTokens),
	}
}

// extend lets the run grow until b.Excess tokens are freed. It ends where the
// newest summary ends if nearly as much is freed by then, so that the summary covers
// all that left.
func (w window) extend(v View, b budget.Budget, s State) State {
	const nearly = 0.9
	summary := w.summary(v, b)
	prose := w.digests.gauge.Text(summary.quote())
	through := w.cut(v, b, prose)
	if summary.Through > s.CollapsedThrough && (w.atSummary || w.covers(v, summary, through, nearly)) {
		through = summary.Through
	}
	if w.atSummary && through != summary.Through || through <= s.CollapsedThrough {
		return s
	}
	s.CollapsedThrough, s.CollapsedFor = through, w.sizeFor(b, prose)
	if summary.Through <= through && summary.ID != "" {
		s.Summary = summary.ID
	}
	return s
}

// summary is the newest that no spared turn stands in and that fits.
func (w window) summary(v View, b budget.Budget) Summary {
	return w.digests.summaries.newest(w.spared(v), w.digests.proseLimit(b), w.digests.gauge)
}

// covers reports whether a run that ends where the summary does frees at least a part
// of what one through an event would.
func (w window) covers(v View, s Summary, through eventlog.Seq, part float64) bool {
	return w.frees(v, s.Through) >= fraction(w.frees(v, through), part)
}

// frees is the size of the groups that leave with a run through an event.
func (w window) frees(v View, through eventlog.Seq) uint64 {
	var sum uint64
	for i := range v.items {
		if v.items[i].group.collapses(through) {
			sum += v.items[i].tokens
		}
	}
	return sum
}

// spared is the last event before the newest turns, which no cut takes that is not
// the last resort.
func (w window) spared(v View) eventlog.Seq {
	for i := range v.items {
		g := v.items[i].group
		if !g.Anchor && !g.Pinned && v.lastTurn()-g.Turn < max(w.run.KeepLastTurns, 1) {
			return g.First - 1
		}
	}
	return 0
}

// overWindow is by how much the dialogue exceeds the policy's own limits. Like a
// forced cut it goes down to a fraction of them, so that the next is turns away.
func (w window) overWindow(v View) uint64 {
	if w.policy.MaxTokens > 0 && v.Tokens() > w.policy.MaxTokens {
		return v.Tokens() - fraction(w.policy.MaxTokens, w.run.To)
	}
	return w.overTurns(v)
}

// overTurns is the size of the groups that must leave for MaxTurns.
func (w window) overTurns(v View) uint64 {
	if w.policy.MaxTurns == 0 {
		return 0
	}
	turns := uint32(0)
	for i := range v.items {
		if v.items[i].group.Kind == KindTurn {
			turns++
		}
	}
	if turns <= w.policy.MaxTurns {
		return 0
	}
	surplus := turns - uint32(fraction(uint64(w.policy.MaxTurns), w.run.To))
	var excess uint64
	for i := range v.items {
		if surplus == 0 {
			break
		}
		if !v.items[i].group.collapses(v.items[i].group.First) {
			continue
		}
		if excess += v.items[i].tokens; v.items[i].group.Kind == KindTurn {
			surplus--
		}
	}
	return excess
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

// cut finds the event through which groups must leave to free b.Excess tokens,
// their digest counted at its largest unless it is only turns that are too many.
// The newest turns are spared as long as that is enough to come under the target,
// and the newest group always. An excess of everything there is spares the newest
// group alone.
func (w window) cut(v View, b budget.Budget, prose uint64) eventlog.Seq {
	need := b.Excess
	if need > w.overTurns(v) {
		need += w.room(v, b, prose)
	}
	var through eventlog.Seq
	var freed uint64
	for i := 0; i < v.Len()-1 && freed < need; i++ {
		it := &v.items[i]
		if it.group.Anchor || it.group.Pinned {
			continue
		}
		recent := v.lastTurn()-it.group.Turn < w.run.KeepLastTurns
		if recent && b.Excess < v.Tokens() && v.Tokens()-freed <= b.Target {
			break
		}
		freed += it.tokens
		through = max(through, it.group.First)
	}
	return through
}

// fraction is a part of n, rounded down alike on every machine.
func fraction(n uint64, part float64) uint64 {
	return budget.Budget{Target: n}.Share(part)
}
