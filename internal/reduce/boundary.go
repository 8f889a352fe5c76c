package reduce

import (
	eventlog "github.com/contextd/contextd/internal/log"
)

// boundary is the place where a harness compacted its transcript: there a conversation shows the compaction's text
// instead of the events that the harness dropped.
type boundary struct {
	seq     eventlog.Seq // of the compaction; 0 if there is none
	skipped eventlog.Ranges
}

// Boundary returns the event of the compaction that AppendBoundary showed; 0 if there is none.
func (c *Conversation) Boundary() eventlog.Seq { return c.boundary.seq }

// Skipped reports whether an event was a message that was passed to Skip.
func (c *Conversation) Skipped(seq eventlog.Seq) bool {
	return c.boundary.skipped.Has(seq)
}

// Skip reads the next event without showing it. The event is among Events and counts for the size of the log. As with
// Append, it must follow the head directly.
func (c *Conversation) Skip(e eventlog.Event) {
	e = c.filtered(e)
	c.head, c.turns = e.Seq, e.Turn
	c.lastAt.observe(e)
	m, ok := e.Body.(*eventlog.Message)
	if !ok {
		return
	}
	c.sources.add(e.Seq, nil)
	c.boundary.skipped.Add(e.Seq)
	msg := c.message(m.Role, c.blocks(e, m), e.Seq, m.Model)
	c.tokens += msg.Tokens
	c.chars += msg.Chars
}

// AppendBoundary adds the text that replaces the skipped events, as a user's message in the anchor. first is the
// first skipped event: the message takes its place, so later events must be appended after this call. The blocks are
// those of the compaction's event, which comes later in the log; AppendBoundaryEvent appends it when its turn comes.
func (c *Conversation) AppendBoundary(compaction eventlog.Event, first eventlog.Seq, blocks []eventlog.Block) {
	if c.filter != nil { // what it replaces is counted with the compaction's event
		e, _ := c.filter(eventlog.Event{Body: &eventlog.Message{Role: eventlog.RoleUser, Blocks: blocks}})
		blocks = e.Body.(*eventlog.Message).Blocks
	}
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
	c.groups = append(c.groups, g) // the size of the log does not change
	if c.first.group < 0 {
		// It takes the place of the first human message.
		c.first = opening{group: len(c.groups) - 1, human: true}
	}
}

// AppendBoundaryEvent appends the event of the compaction whose blocks AppendBoundary showed.
func (c *Conversation) AppendBoundaryEvent(compaction eventlog.Event) {
	c.Append(compaction)
	c.sources.add(compaction.Seq, nil)
}
