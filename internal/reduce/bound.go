package reduce

import (
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/provider"
)

// Bound reports whether the conversation has bound reasoning: a provider takes it back only where everything
// before it is as it was when the model wrote it.
func (c *Conversation) Bound() bool { return c.bound }

// isBound reports whether a block of a message is bound reasoning.
func (m *Message) isBound(b Block) bool {
	t, ok := b.Block.(eventlog.Thinking)
	return ok && t.Sealed() && provider.Binds(m.Model)
}

// ShowsBound reports whether the view shows bound reasoning of an event in a range.
func (v View) ShowsBound(in eventlog.Range) bool {
	for i := range v.items {
		if v.items[i].dropped != nil {
			continue
		}
		g := v.items[i].group
		for m := range g.Messages {
			if !g.Messages[m].bound {
				continue
			}
			for b, block := range g.Messages[m].Blocks {
				if edit, ok := v.Edit(i, m, b); block.Seq >= in.From && block.Seq <= in.To && g.Messages[m].isBound(block) && (!ok || edit.Kind != Omitted) {
					return true
				}
			}
		}
	}
	return false
}

// OmitBound omits the bound reasoning of group i that a state unbinds, also of a pinned message and of one
// that has nothing else: the provider would refuse the request.
func (e *Editor) OmitBound(i int, s State, reducer, reason string) bool {
	done := false
	g := e.v.items[i].group
	for m := range g.Messages {
		if !g.Messages[m].bound {
			continue
		}
		for b, block := range g.Messages[m].Blocks {
			if s.Unbound.Has(block.Seq) && g.Messages[m].isBound(block) {
				done = e.put(i, Edit{Kind: Omitted, Message: m, Block: b, Reducer: reducer, Reason: reason}) || done
			}
		}
	}
	return done
}
