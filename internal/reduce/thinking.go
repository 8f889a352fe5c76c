package reduce

import "fmt"

// thinking omits reasoning that was old enough at the last batch, and bound reasoning before which something changed.
// It omits sealed reasoning for its age only if the provider permits that, and then all of a message or nothing.
// Anthropic permits requests to omit the thinking of turns before the last user message, because these are in no open
// tool-use loop.
type thinking struct{ keepTurns *uint32 }

func (thinking) Name() string { return "thinking" }

func (t thinking) Reduce(v View, s State) (View, Step) {
	due, note := t.keepTurns != nil && s.EvictedAsOf > 0, "nothing was due"
	if !due && len(s.Unbound) == 0 {
		return v, Step{Note: note}
	}
	e := v.Editor()
	if due {
		note = t.omitOld(e, v, s)
	}
	if len(s.Unbound) > 0 {
		old := e.Touched()
		for i := range v.Len() {
			if v.Ended() != nil {
				break
			}
			e.OmitBound(i, s, t.Name(), "its provider takes it only after what the model saw before it, and that has changed")
		}
		note += fmt.Sprintf("; omitted %d that no longer follow what they followed", e.Touched()-old)
	}
	return e.View(), Step{Touched: e.Touched(), Note: note}
}

// omitOld omits reasoning by its age, and says how much.
func (t thinking) omitOld(e *Editor, v View, s State) string {
	loop := v.loopStart(s.EvictedAsOf)
	sealed, reason := 0, fmt.Sprintf("older than %d turns", *t.keepTurns)
	for i := range v.Len() {
		if v.Ended() != nil {
			break
		}
		g := v.Group(i)
		if g.Kind != KindTurn || g.First > s.EvictedAsOf || s.EvictedTurn-g.Turn < *t.keepTurns {
			continue
		}
		// The user's message that ends its loop may be dropped before a group that outlasts it.
		if g.Sealed && (i >= loop || v.protection.outlasts(g) || !g.SealedBy().Seals().OmitBefore) {
			sealed++
			continue
		}
		e.OmitThinking(i, t.Name(), reason)
	}
	return fmt.Sprintf("omitted %d thinking blocks as of event %d; kept those of %d turns that their provider signs", e.Touched(), s.EvictedAsOf, sealed)
}
