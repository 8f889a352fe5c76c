package reduce

import (
	"cmp"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/provider"
)

// Bound reports whether the conversation has bound reasoning: a provider takes it back only where everything
// before it is as it was when the model wrote it.
func (c *Conversation) Bound() bool { return c.bound }

// isBound reports whether a block of a message is bound reasoning.
func (m *Message) isBound(b Block) bool {
	return provider.Bound(b.Block, m.Model)
}

// Seen compares a view with an earlier context of its stream.
type Seen struct {
	// AsOf is the event of that context; 0 if there is none. From is the first block of the view that it did not show in
	// the same way; zero if there is none.
	AsOf eventlog.Seq
	From eventlog.Place
	// Other is set if models were asked with something else than what the view shows before From. Without an earlier
	// context, and not set, models are taken to have seen the log as it was when they wrote.
	Other bool
}

// Unbound returns the event from which on bound reasoning must be omitted, because the view shows some that does not
// follow what its model saw. It is 0 if there is none, or if reasoning is returned as text, which nothing binds.
func (v View) Unbound(seen Seen) (from eventlog.Seq) {
	if v.ReturnsReasoning() {
		return 0
	}
	began, changed := false, seen.Other
	kept, newest := seen.AsOf, eventlog.Seq(0)
	for i := range v.items {
		it := &v.items[i]
		g := it.group
		fresh := g.First > seen.AsOf
		digested := v.digest.Through > 0 && v.digestAt == i
		changed = changed || fresh && it.dropped != nil || digested && (fresh || began)
		if it.dropped != nil {
			continue
		}
		for m := range g.Messages {
			msg := &g.Messages[m]
			for b, block := range msg.Blocks {
				if block.Seq == 0 {
					continue // a synthetic result
				}
				if !began && (fresh || seen.From == eventlog.Place{Seq: block.Seq, Block: block.Index}) {
					// A message that is no answer came while the model was asked.
					began, changed = true, changed || seen.AsOf > 0 && msg.Role != eventlog.RoleAssistant
				}
				if !began {
					continue
				}
				_, edited := v.Edit(i, m, b)
				changed = changed || edited || block.Seq <= seen.AsOf
				if !edited && msg.isBound(block) {
					changed = changed || newest > block.Seq || g.Labels[eventlog.LabelOwnPrompt] == "true"
					if changed {
						from = min(cmp.Or(from, kept+1), block.Seq) // with events before it, so that ranges join
					} else {
						kept = block.Seq
					}
				}
				newest = max(newest, block.Seq)
			}
		}
	}
	return from
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
