package reduce

import (
	"github.com/contextd/contextd/internal/ledger"
	eventlog "github.com/contextd/contextd/internal/log"
)

// reach counts the names in the calls after a run that came last before as much text as a
// cut leaves: an agent that names many of these works with what a cut would drop. It is a
// function of the groups after the run, and reads each of them once as the log grows.
type reach struct {
	// through is where the run ends, and tokens what a cut leaves.
	through eventlog.Seq
	tokens  uint64

	next  int               // index of the first group not taken in
	at    map[string]uint64 // where each name came last, in tokens after the run
	size  uint64            // of the groups taken in, in tokens
	turns int
	far   int // names in calls that came last so far back
}

const reachBytes = 48 // for each name

// reachesBack reports whether calls name more a turn of what a cut down to goal would drop than
// the policy allows for a cut that pays.
func (r *run) reachesBack(through eventlog.Seq, goal uint64) bool {
	most := r.policy.Collapse.CutReach
	if most == 0 {
		return false
	}
	c := &r.conv.reach
	if c.at == nil || c.through != through || c.tokens != goal {
		*c = reach{through: through, tokens: goal, next: r.conv.after(through), at: map[string]uint64{}}
	}
	for ; c.next < len(r.conv.groups)-1 && r.ended() == nil; c.next++ { // results may come to the newest
		c.take(r.conv.groups[c.next])
	}
	return float64(c.far) > most*float64(c.turns)
}

// take counts what the calls of a group name, and notes where names are.
func (c *reach) take(g *Group) {
	if g.Anchor {
		return // which no cut drops
	}
	c.size += g.Tokens
	if g.Kind == KindTurn {
		c.turns++
	} else {
		for _, m := range g.Messages {
			for _, b := range m.Blocks {
				c.note(BodyText(b.Block))
			}
		}
	}
	for i := range g.Calls {
		c.far += c.note(ledger.Decode(g.Calls[i].Arguments))
	}
	for i := range g.Calls {
		c.note(g.Calls[i].Body)
	}
}

// note notes the names in a text, and returns how many of them came last too far back.
func (c *reach) note(text string) (far int) {
	ledger.Identifiers(text, func(start, end int) bool {
		name := text[start:end]
		if at, ok := c.at[name]; ok && c.size-at > c.tokens {
			far++
		}
		c.at[name] = c.size
		return true
	})
	return far
}

// forget starts again where group i was taken in, which is about to change.
func (c *reach) forget(i int) {
	if i < c.next {
		*c = reach{}
	}
}

func (c *reach) bytes() int { return reachBytes * len(c.at) }
