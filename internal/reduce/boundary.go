package reduce

import (
	"sort"

	eventlog "github.com/contextd/contextd/internal/log"
)

// boundary is what a conversation shows instead of the events that a harness left behind.
type boundary struct {
	seq     eventlog.Seq // of the compaction; 0 if there is none
	skipped []Range
}

func (b *boundary) skip(seq eventlog.Seq) {
	if n := len(b.skipped); n > 0 && b.skipped[n-1].To+1 == seq {
		b.skipped[n-1].To = seq
		return
	}
	b.skipped = append(b.skipped, Range{seq, seq})
}

// Boundary is the event of the compaction in whose blocks AppendBoundary showed, or 0.
func (c *Conversation) Boundary() eventlog.Seq { return c.boundary.seq }

// Skipped reports whether an event was a message and passed to Skip.
func (c *Conversation) Skipped(seq eventlog.Seq) bool {
	all := c.boundary.skipped
	i := sort.Search(len(all), func(i int) bool { return all[i].To >= seq })
	return i < len(all) && all[i].From <= seq
}

// Skip takes note of the next event without showing it: it counts as said, and for what
// the whole log weighs. Like Append, it must follow on the head.
func (c *Conversation) Skip(e eventlog.Event) {
	c.head, c.turns = e.Seq, e.Turn
	c.lastAt.observe(e)
	m, ok := e.Body.(*eventlog.Message)
	if !ok {
		return
	}
	c.said.add(e.Seq, nil)
	c.boundary.skip(e.Seq)
	msg := c.message(m.Role, c.blocks(e, m), e.Seq, m.Model)
	c.tokens += msg.Tokens
	c.chars += msg.Chars
}

// AppendBoundary shows what stands for events that were skipped, as a message of the
// user's. first is the first of them: the group takes its place, and must be appended
// before any later event. It is a part of the anchor. The blocks are those of the
// compaction's event, which is still to come and is appended by SayBoundary.
func (c *Conversation) AppendBoundary(compaction eventlog.Event, first eventlog.Seq, blocks []eventlog.Block) {
	all := make([]Block, len(blocks))
	for i, b := range blocks {
		all[i] = Block{Block: b, Seq: compaction.Seq, Index: i, Tokens: c.gauge.Block(b)}
	}
	msg := c.message(eventlog.RoleUser, all, compaction.Seq, "")
	g := &Group{
		Kind: KindUser, Turn: c.turns, First: first, Last: first, Anchor: true, Opens: c.first.group < 0,
		Messages: []Message{msg}, Tokens: msg.Tokens, Chars: msg.Chars,
	}
	c.boundary.seq = compaction.Seq
	c.groups = append(c.groups, g) // what the log weighs does not change
	if c.first.group < 0 {
		// It stands for the first words of a human.
		c.first = opening{group: len(c.groups) - 1, human: true}
	}
}

// SayBoundary takes the event of a compaction in whose blocks AppendBoundary showed.
func (c *Conversation) SayBoundary(compaction eventlog.Event) {
	c.Append(compaction)
	c.said.add(compaction.Seq, nil)
}
