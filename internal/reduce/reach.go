package reduce

import (
	"slices"

	"github.com/contextd/contextd/internal/ledger"
	eventlog "github.com/contextd/contextd/internal/log"
)

// reach measures how far back the calls of an agent reach. It counts the names in calls whose previous occurrence is
// older than the text that a cut would leave: an agent with many of these works with text that the cut would drop. It
// depends only on the groups after the run, and reads each of them once as the log grows.
type reach struct {
	// through is the event at which the run ends, and tokens the size that a cut would leave.
	through eventlog.Seq
	tokens  uint64

	next  int               // index of the first group that was not read
	at    map[string]uint64 // the last occurrence of each name, as a distance from the run in tokens
	size  uint64            // tokens of the groups that were read
	turns int
	far   int // names in calls whose previous occurrence was too far back
	kept  int // bytes of the decoded arguments that the names in at point into
}

const reachBytes = 48 // memory of each name, without its text

// reachesBack reports whether calls have more names per turn from text that a cut down to goal would drop than the
// policy allows for a cut that pays.
func (r *reduction) reachesBack(through eventlog.Seq, goal uint64) bool {
	most := r.policy.Collapse.CutReach
	if most == 0 {
		return false
	}
	c := r.conv.reachOf(through, goal)
	for ; c.next < len(r.conv.groups)-1 && r.ended() == nil; c.next++ { // the newest group may still get results
		c.read(r.conv.groups[c.next])
	}
	return float64(c.far) > most*float64(c.turns)
}

// reaches caches the values that were used last, newest last, so that a few budgets may alternate.
type reaches []*reach

// reachOf returns the reach for a run and the size after a cut. It forgets those of shorter runs with the same size,
// because runs only grow.
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

// read counts the names in the calls of a group, and records where the names of the group are.
func (c *reach) read(g *Group) {
	if g.Anchor {
		return // no cut drops it
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

// note records the positions of the names in a text, and returns how many of them last occurred too far back.
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

// forget drops those that have read group i, which is about to change.
func (all *reaches) forget(i int) {
	*all = slices.DeleteFunc(*all, func(of *reach) bool { return i < of.next })
}

func (all reaches) bytes() (n int) {
	for _, of := range all {
		n += reachBytes*len(of.at) + of.kept
	}
	return n
}
