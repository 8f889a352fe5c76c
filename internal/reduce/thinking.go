package reduce

import "fmt"

// thinking omits reasoning that is old enough as of the last batch. Sealed reasoning is omitted only where
// its provider allows it, and then the whole of a message or nothing: Anthropic lets a request omit the
// thinking of turns before the last user message, as they are in no open tool-use loop.
type thinking struct{ policy Thinking }

func (thinking) Name() string { return "thinking" }

func (t thinking) Reduce(v View, s State) (View, Step) {
	if t.policy.KeepTurns == nil || s.EvictedAsOf == 0 {
		return v, Step{Note: "nothing was due"}
	}
	loop := v.loopStart(s.EvictedAsOf)
	e := v.Editor()
	sealed, reason := 0, fmt.Sprintf("older than %d turns", *t.policy.KeepTurns)
	for i := range v.Len() {
		if v.Ended() != nil {
			break
		}
		g := v.Group(i)
		if g.Kind != KindTurn || g.First > s.EvictedAsOf || s.EvictedTurn-g.Turn < *t.policy.KeepTurns {
			continue
		}
		// The user's message that ends its loop may be dropped before a group that outlasts it.
		if g.Sealed && (i >= loop || v.protection.outlasts(g) || !g.SealedBy().Seals().OmitBefore) {
			sealed++
			continue
		}
		e.OmitThinking(i, t.Name(), reason)
	}
	return e.View(), Step{
		Touched: e.Touched(),
		Note:    fmt.Sprintf("omitted %d thinking blocks as of event %d; kept those of %d turns that their provider signs", e.Touched(), s.EvictedAsOf, sealed),
	}
}
