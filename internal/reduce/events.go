package reduce

import (
	"slices"

	eventlog "github.com/contextd/contextd/internal/log"
)

// boundary is what a conversation shows instead of the events that a harness dropped.
type boundary struct {
	seq     eventlog.Seq // of the compaction; 0 if there is none
	skipped eventlog.Ranges
}

// Boundary is the event of the compaction in whose blocks AppendBoundary showed, or 0.
func (c *Conversation) Boundary() eventlog.Seq { return c.boundary.seq }

// Skipped reports whether an event was a message and passed to Skip.
func (c *Conversation) Skipped(seq eventlog.Seq) bool {
	return c.boundary.skipped.Has(seq)
}

// Skip takes note of the next event without showing it: it counts among Events, and for
// the size of the whole log. Like Append, it must follow on the head.
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

// AppendBoundary shows what replaces events that were skipped, as a message of the
// user's. first is the first of them: the group takes its place, and must be appended
// before any later event. It is a part of the anchor. The blocks are those of the
// compaction's event, which is still to come and is appended by AppendBoundaryEvent.
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
		// It takes the place of the first words of a human.
		c.first = opening{group: len(c.groups) - 1, human: true}
	}
}

// AppendBoundaryEvent takes the event of a compaction in whose blocks AppendBoundary showed.
func (c *Conversation) AppendBoundaryEvent(compaction eventlog.Event) {
	c.Append(compaction)
	c.sources.add(compaction.Seq, nil)
}

// sources keeps which events the groups are made of, without going through them.
type sources struct {
	ranges eventlog.Ranges
	// shared leads from an event to its groups, by index, where they are several.
	shared map[eventlog.Seq][]int
}

// add takes in the next event and the groups that it is a part of.
func (s *sources) add(seq eventlog.Seq, groups []int) {
	s.ranges.Add(seq)
	slices.Sort(groups)
	if groups = slices.Compact(groups); len(groups) > 1 {
		if s.shared == nil {
			s.shared = map[eventlog.Seq][]int{}
		}
		s.shared[seq] = groups
	}
}

// Events are those that the groups are made of. The slice must not be changed, and is
// valid until the next Append.
func (c *Conversation) Events() eventlog.Ranges { return c.sources.ranges }

// SharesEvents reports whether an event is a part of several groups.
func (c *Conversation) SharesEvents() bool { return len(c.sources.shared) > 0 }

// Shared returns the groups that an event is a part of where they are several.
func (c *Conversation) Shared(seq eventlog.Seq) []*Group {
	at := c.sources.shared[seq]
	groups := make([]*Group, len(at))
	for i := range at {
		groups[i] = c.lend()[at[i]]
	}
	return groups
}
