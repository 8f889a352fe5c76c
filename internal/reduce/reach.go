package reduce

import (
	"slices"

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
	kept  int // bytes of decoded arguments, in which names are
}

const reachBytes = 48 // for each name, beside the text it is in

// reachesBack reports whether calls name more a turn of what a cut down to goal would drop than
// the policy allows for a cut that pays.
func (r *reduction) reachesBack(through eventlog.Seq, goal uint64) bool {
	most := r.policy.Collapse.CutReach
	if most == 0 {
		return false
	}
	c := r.conv.reachOf(through, goal)
	for ; c.next < len(r.conv.groups)-1 && r.ended() == nil; c.next++ { // results may come to the newest
		c.take(r.conv.groups[c.next])
	}
	return float64(c.far) > most*float64(c.turns)
}

// reaches are those asked for last, newest last: as many as budgets that take turns.
type reaches []*reach

// reachOf is that of a run and of what a cut leaves. One of a run that ended before, with as much left, is of no
// use any more.
func (c *Conversation) reachOf(through eventlog.Seq, tokens uint64) *reach {
	at := slices.IndexFunc(c.reach, func(of *reach) bool { return of.through == through && of.tokens == tokens })
	var found *reach
	if at >= 0 {
		found = c.reach[at]
	} else {
		found = &reach{through: through, tokens: tokens, next: c.after(through), at: map[string]uint64{}}
	}
	c.reach = slices.DeleteFunc(c.reach, func(of *reach) bool { return of == found || of.tokens == tokens && of.through < through })
	c.reach = append(c.reach[max(0, len(c.reach)-maxCached+1):], found)
	return found
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
		arguments, names := ledger.Decode(g.Calls[i].Arguments), len(c.at)
		if c.far += c.note(arguments); len(c.at) > names {
			c.kept += len(arguments)
		}
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

// forget drops those in which group i was taken in, which is about to change.
func (all *reaches) forget(i int) {
	*all = slices.DeleteFunc(*all, func(of *reach) bool { return i < of.next })
}

func (all reaches) bytes() (n int) {
	for _, of := range all {
		n += reachBytes*len(of.at) + of.kept
	}
	return n
}
