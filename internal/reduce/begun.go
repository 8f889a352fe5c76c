package reduce

import (
	"errors"
	"slices"
)

// ErrIncomplete ends a reduction of a conversation that was begun at a checkpoint, if the reduction needs groups from
// before the checkpoint. The caller may repeat it with a conversation of the whole log.
var ErrIncomplete = errors.New("the conversation was begun at its digest, and the reduction needs what came before")

// begun has what a conversation that was begun at a checkpoint knows of the log before the checkpoint.
type begun struct {
	Checkpoint
	// used reports whether an id with this hash may have been used up to the checkpoint.
	used func(uint32) bool
	// settled is set by Settle, when all groups that are shown were read.
	settled bool
	// older is the index of the group that sums up all groups older than the others in Checkpoint.Dropped;
	// -1 if there is none.
	older int
}

// Begin begins an empty conversation at a checkpoint. The caller then appends the events of Checkpoint.Shown and
// calls Settle. used must report whether a hash is among those that NamesOf returns for the complete stretches before
// the checkpoint.
func (c *Conversation) Begin(cp Checkpoint, used func(uint32) bool) {
	c.begun = &begun{Checkpoint: cp, older: -1, used: func(h uint32) bool {
		_, ok := slices.BinarySearch(cp.Names, h)
		return ok || used(h)
	}}
}

// Settle ends what Begin began. It returns false if the events gave other groups than when the whole log was read:
// the conversation must then be discarded.
func (c *Conversation) Settle() bool {
	b := c.begun
	c.join()
	if b.Gauge != c.gauge.Name() || len(c.groups) < b.Before || sumOf(c.groups) != b.ShownSum || len(c.reminders) > 0 {
		return false
	}
	c.insertDropped(b.Dropped)
	b.older = slices.IndexFunc(c.groups, (*Group).isUnread)
	c.head, c.turns, c.tokens, c.chars = b.AsOf, b.Turns, b.Tokens, b.Chars
	c.lastAt = eventTimes{call: b.Call, newest: b.Newest}
	c.sources.ranges = slices.Clone(b.Events)
	c.digestMemos.fileWork, c.digestMemos.seen = b.FileTokens, len(c.groups)
	m := &c.digestMemos.memos[0]
	m.next, m.turn, m.changed, m.opens = c.after(b.Through), b.Turn, b.Changed, b.Opens
	m.dropped = Digest{Groups: b.Groups, Messages: b.Messages, Calls: b.Calls, RawTokens: b.RawTokens}
	for _, g := range c.groups[:m.next] {
		switch {
		case g.Anchor || g.Pinned:
			m.front = append(m.front, g)
		case !g.isUnread():
			if _, stays := slices.BinarySearch(b.Stay, g.First); stays {
				m.stay = append(m.stay, g)
			}
		}
	}
	b.settled = len(m.front)+len(m.stay) == b.Before
	return b.settled
}

// insertDropped inserts the groups that were not read among those that were, in the order of the log.
func (c *Conversation) insertDropped(dropped []DroppedGroup) {
	moved := make([]int, len(c.groups)) // from the index of a group to its new one
	all := make([]*Group, 0, len(c.groups)+len(dropped))
	for i, g := range c.groups {
		for len(dropped) > 0 && dropped[0].First < g.First {
			all, dropped = append(all, dropped[0].group()), dropped[1:]
		}
		moved[i] = len(all)
		all = append(all, g)
	}
	for _, d := range dropped {
		all = append(all, d.group())
	}
	c.groups, c.ends = all, nil
	for name, i := range c.byGroupID {
		c.byGroupID[name] = moved[i]
	}
	for id, at := range c.open {
		c.open[id] = openCall{moved[at.group], at.call}
	}
	if c.first.group >= 0 {
		c.first.group = moved[c.first.group]
	}
}

// group returns a group with only the place and the size of the one that was not read.
func (d DroppedGroup) group() *Group { return &Group{First: d.First, Last: d.Last, Tokens: d.Tokens} }

// isUnread reports whether only the place and the size of the group are known.
func (g *Group) isUnread() bool { return g.Kind == 0 }

// Incomplete reports whether a call needed groups from before the checkpoint. The conversation must then be
// discarded.
func (c *Conversation) Incomplete() bool { return c.missing }

// Whole reports whether the conversation has all groups of the log.
func (c *Conversation) Whole() bool { return c.begun == nil }

// changed records that group i, which had the given size, has changed.
func (c *Conversation) changed(i int, tokens uint64) {
	if c.begun == nil || !c.begun.settled {
		return
	}
	c.missing = c.missing || i < c.digestMemos.memos[0].next
	if i < c.digestMemos.seen {
		c.begun.AllFiles = false
		c.begun.FileTokens -= min(c.begun.FileTokens, tokens)
	}
}

// restored returns the memo of the digest at which the conversation was begun. The conversation can give no other.
func (d *digestWriter) restored(key digestKey, quoted Summary) *digestMemo {
	m := &d.memos.memos[0]
	if m.key == key {
		return m
	}
	sum := key.sum(quoted, d.boundary)
	if w := d.written; m.key == (digestKey{}) && sum == d.conv.begun.Sum && w.Sum == sum && w.AsOf > 0 && m.changed <= w.AsOf {
		m.text, m.tokens, m.summary, m.sum, m.key = w.Text, w.Tokens, w.SummaryTokens, sum, key
		return m
	}
	d.conv.missing = true
	return m
}

// needs reports whether the reduction cannot go on because it needs group i itself, of which only a sum with older
// groups is known. If so, it also records that.
func (c *Conversation) needs(i int) bool {
	if c.begun != nil && i <= c.begun.older {
		c.missing = true
	}
	return c.missing
}
