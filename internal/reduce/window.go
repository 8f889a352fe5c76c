package reduce

import (
	"fmt"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
)

// window lets the oldest groups leave as a leading run when the dialogue is over
// its limits or the budget. The digest names their calls.
type window struct {
	policy  Window
	run     Collapse
	digests *digests
}

func (window) Name() string { return "dialogue_window" }

// Reduce shows nothing new: Pipeline.Resume let the run of the state leave before
// any other reducer ran, so that what those save does not change what a digest is
// measured against.
func (w window) Reduce(v View, b budget.Budget, s State) (View, State, Step) {
	if b.Excess > 0 {
		if through := w.cut(v, b); through > s.CollapsedThrough {
			s.CollapsedThrough, s.CollapsedFor = through, w.sizeFor(b)
		}
	}
	d, _ := v.Digest()
	return v, s, Step{
		Touched: d.Groups,
		Note: fmt.Sprintf("%d groups with %d calls left the front, through event %d; their digest takes %d tokens for %d",
			d.Groups, d.Calls, d.Through, d.Tokens, d.RawTokens),
	}
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

// sizeFor is the target whose shares a digest is written for.
func (w window) sizeFor(b budget.Budget) uint64 {
	if w.policy.MaxTokens > 0 {
		b.Target = min(b.Target, w.policy.MaxTokens)
	}
	return w.digests.sizeFor(b)
}

// cut finds the event through which groups must leave to free b.Excess tokens,
// their digest counted at its largest unless it is only turns that are too many.
// The newest turns are spared as long as that is enough to come under the target,
// and the newest group always. An excess of everything there is spares the newest
// group alone.
func (w window) cut(v View, b budget.Budget) eventlog.Seq {
	need := b.Excess
	if need > w.overTurns(v) {
		d, _ := v.Digest()
		most := w.digests.most(w.sizeFor(b))
		need += most - min(d.Tokens, most)
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
