package reduce

import (
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/provider"
)

// SealedBy is the provider by whose rules a group with sealed reasoning stands. It is
// Unknown where its blocks tell of several, or none is sealed.
func (g *Group) SealedBy() provider.Provider {
	if !g.Sealed {
		return provider.Unknown
	}
	by, found := provider.Unknown, false
	for m := range g.Messages {
		for b := range g.Messages[m].Blocks {
			t, ok := g.Messages[m].Blocks[b].Block.(eventlog.Thinking)
			if !ok || !t.Sealed() {
				continue
			}
			one := provider.OfBlock(t, g.Messages[m].Model)
			if found && one != by {
				return provider.Unknown
			}
			by, found = one, true
		}
	}
	return by
}

// Loop is the index of the newest user group in the view: the turns behind it belong to
// the tool-use loop that is open. It is -1 where no user has said anything.
func (v View) Loop() int {
	for i := len(v.items) - 1; i >= 0; i-- {
		if v.items[i].group.Kind == KindUser {
			return i
		}
	}
	return -1
}
