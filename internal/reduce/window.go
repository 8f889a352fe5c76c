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

// Reduce expects the run recorded in the state to have left the view already:
// Resume does that, so that what later reducers save in full groups does not
// change what a digest is measured against.
func (w window) Reduce(v View, b budget.Budget, s State) (View, State, Step) {
	excess := max(b.Excess, w.overWindow(v))
	if excess > 0 {
		if through := w.cut(v, b, excess); through > s.CollapsedThrough {
			// The shares never grow: what once left with a run stays away.
			target := b.Target
			if s.CollapsedFor > 0 {
				target = min(target, s.CollapsedFor)
			}
			e := v.Editor()
			if w.digests.collapse(e, through, target) {
				s.CollapsedThrough, s.CollapsedFor = through, target
				v = e.View()
			}
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
		return v.Tokens() - uint64(float64(w.policy.MaxTokens)*w.run.To)
	}
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
	surplus := turns - uint32(float64(w.policy.MaxTurns)*w.run.To)
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

// cut finds the event through which groups must leave to free excess tokens,
// their digest counted at its largest. It spares the newest turns as long as
// that is enough to come under the target, and the newest group always.
func (w window) cut(v View, b budget.Budget, excess uint64) eventlog.Seq {
	need := excess + w.digests.most(b.Target)
	if d, _ := v.Digest(); need > d.Tokens {
		need -= d.Tokens
	}
	var through eventlog.Seq
	var freed uint64
	last := v.Len() - 1
	for i := 0; i < last && freed < need; i++ {
		it := &v.items[i]
		if it.group.Anchor || it.group.Pinned {
			continue
		}
		recent := v.lastTurn()-it.group.Turn < w.run.KeepLastTurns
		if over := v.Tokens() > b.Target; recent && (!over || v.Tokens()-freed <= b.Target) {
			break
		}
		freed += it.tokens
		through = max(through, it.group.First)
	}
	return through
}
