package reduce

import (
	"maps"
	"slices"
)

// Groups returns the groups in the order of their first events.
func (c *Conversation) Groups() []*Group { return c.lend() }

// lend returns the groups, which the caller shares from now on.
func (c *Conversation) lend() []*Group {
	c.join()
	clear(c.own)
	c.lent = len(c.groups)
	return c.groups
}

// join appends to each group the messages of users that come after all results.
func (c *Conversation) join() {
	for i, rest := range c.rest {
		c.groups[i].Messages = append(c.groups[i].Messages, rest...)
	}
	clear(c.rest)
}

// replace changes group i in place, or in a copy if a caller may have the group. Of all changes until the next lend only
// the first makes a copy, because a group may have very many messages.
func (c *Conversation) replace(i int, change func(*Group)) {
	g := c.groups[i]
	before := g.Tokens
	c.tokens -= g.Tokens
	c.chars -= g.Chars
	if i < c.lent && !c.own[i] {
		own := *g
		own.Messages, own.Calls, own.Labels = slices.Clone(g.Messages), slices.Clone(g.Calls), maps.Clone(g.Labels)
		g = &own
		c.groups[i], c.own[i] = g, true
	}
	change(g)
	g.changed = c.head
	c.changed(i, before)
	c.digestMemos.forget(i)
	c.cached.forget(i)
	c.reach.forget(i)
	c.ends = c.ends[:min(i, len(c.ends))]
	c.tokens += g.Tokens
	c.chars += g.Chars
}
