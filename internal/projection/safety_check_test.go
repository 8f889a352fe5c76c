package projection_test

import (
	"reflect"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/provider"
	"github.com/contextd/contextd/internal/reduce"
)

// inLoop reports whether no user message comes after group i.
func inLoop(v reduce.View, i int) bool {
	for ; i < v.Len(); i++ {
		if v.Group(i).Kind == reduce.KindUser {
			return false
		}
	}
	return true
}

// thoughtBefore reports whether the open loop has sealed reasoning before group i which a user's text would
// cut off.
func thoughtBefore(v reduce.View, i int) bool {
	for i--; i >= 0 && v.Group(i).Kind != reduce.KindUser; i-- {
		if g := v.Group(i); g.Sealed && g.SealedBy() != provider.OpenAI && g.SealedBy() != provider.Gemini {
			return true
		}
	}
	return false
}

// mayLeave reports whether its provider allows group i to be dropped whole, with nothing in its place or
// (text) with a text.
func mayLeave(o projection.Options, v reduce.View, i int, text bool) bool {
	g := v.Group(i)
	switch {
	case o.IgnoreSignatures, !inLoop(v, i):
		return true
	case g.Sealed && g.SealedBy() != provider.OpenAI:
		return false
	default:
		return !text || !thoughtBefore(v, i)
	}
}

// mayChange reports whether its provider allows the results of group i to change.
func mayChange(v reduce.View, i int) bool {
	return !v.Group(i).Sealed || v.Group(i).SealedBy() != provider.Unknown
}

// checkSeals compares a view under a policy (got) with the one before it (v) by the rules of the providers:
// no assistant message is changed, and what was dropped or got different results was allowed to.
func checkSeals(t fataler, o projection.Options, v, got reduce.View) {
	at := map[*reduce.Group]int{}
	for i := range got.Len() {
		at[got.Group(i)] = i
	}
	for i := range v.Len() {
		g := v.Group(i)
		j, here := at[g]
		text := here && got.Dropped(j) != nil && got.Dropped(j).Text != ""
		switch left := !here || got.Dropped(j) != nil && v.Dropped(i) == nil; {
		case left && !mayLeave(o, v, i, text):
			t.Fatalf("the group at %d, sealed %v by %v, left the open loop", g.First, g.Sealed, g.SealedBy())
		case left || reflect.DeepEqual(v.Edits(i), got.Edits(j)):
			continue
		case !mayChange(v, i):
			t.Fatalf("the group at %d was changed, and nobody knows who sealed it", g.First)
		}
		for _, e := range got.Edits(j) {
			if was, ok := v.Edit(i, e.Message, e.Block); g.Messages[e.Message].Role != eventlog.RoleTool && (!ok || was != e) {
				t.Fatalf("the %v message at %d was changed", g.Messages[e.Message].Role, g.First)
			}
		}
	}
}
