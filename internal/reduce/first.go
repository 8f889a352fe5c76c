package reduce

// opening is what the user said first: a human, or before any human has said anything
// whoever spoke as the user.
type opening struct {
	// group is its index, or -1.
	group int
	human bool
	// anchored is set when the group is a part of the anchor without it.
	anchored bool
}

// anchor takes note that a user's message stands in group i. The first one is a part of
// the anchor; one that the runtime put in gives way to the first that a human wrote.
func (c *Conversation) anchor(i int, human bool) {
	old := c.first
	if old.group >= 0 && (old.human || !human) {
		return
	}
	if old.group >= 0 && !old.anchored {
		c.replace(old.group, func(g *Group) { g.Anchor = false })
	}
	c.first = opening{group: i, human: human, anchored: c.groups[i].Anchor}
	c.replace(i, func(g *Group) { g.Anchor, g.Opens = true, g.Opens || old.group < 0 })
}
