package reduce

import (
	"maps"
	"slices"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Conversation collects the events of one log into groups as the log grows. It is not safe for concurrent use: no
// method may be called while another runs. The result of Groups is valid until the next Append.
type Conversation struct {
	gauge budget.Gauge
	// filter changes each event before it is read; nil changes nothing. replaced counts its replacements.
	filter   func(eventlog.Event) (_ eventlog.Event, replaced int)
	replaced int

	// The content of the log.

	groups      []*Group
	reminders   []Reminder
	live        map[string]Live
	lastHuman   eventlog.Seq // the first event of the group with a human's newest words; 0 if there is none
	compactions Compactions
	boundary    boundary
	first       opening
	late        []lateResult
	results     results
	sources     sources
	head        eventlog.Seq
	turns       uint32
	lastAt      eventTimes
	tokens      uint64
	chars       int
	bytes       int

	// byGroupID and open locate the group that a further event belongs to.
	byGroupID map[string]int
	open      map[string]openCall // by call id
	made      map[string]uint32   // call id → how many calls have it
	// rest has, by group, the messages of users that come after all results. lend appends them to Messages, so that a
	// further call does not move them.
	rest map[int][]Message

	// begun has what the checkpoint says of groups that were not read; nil if all were read. missing is set when a
	// reduction needs one of these groups. names are the ids that the log uses.
	begun   *begun
	missing bool
	names   []usedName
	bound   bool // see Bound

	// The caches for the next reduction.

	// lent is how many groups callers hold. A change to one of these is made in a copy. own are those that were copied
	// since.
	lent int
	own  map[int]bool
	// ends is the cache of endsOfAll.
	ends        []eventlog.Seq
	texts       *texts
	rules       *rules
	digestMemos digestMemos
	cached      resultCache
	reach       reaches
}

// NewConversation returns an empty conversation whose tokens the gauge counts.
func NewConversation(gauge budget.Gauge) *Conversation {
	return &Conversation{
		gauge:       gauge,
		byGroupID:   map[string]int{},
		open:        map[string]openCall{},
		rest:        map[int][]Message{},
		own:         map[int]bool{},
		live:        map[string]Live{},
		made:        map[string]uint32{},
		first:       opening{group: -1},
		texts:       newTexts(gauge),
		results:     results{number: map[result]int{}},
		digestMemos: newDigestMemos(gauge),
	}
}

// Filter passes every event through f, which also returns how many places it replaced. f must be pure. Filter
// must be called before the first Append.
func (c *Conversation) Filter(f func(eventlog.Event) (_ eventlog.Event, replaced int)) { c.filter = f }

// Replaced returns how many places of the log the filter replaced.
func (c *Conversation) Replaced() int { return c.replaced }

func (c *Conversation) filtered(e eventlog.Event) eventlog.Event {
	if c.filter == nil {
		return e
	}
	e, n := c.filter(e)
	c.replaced += n
	return e
}

// Reminders returns all reminders of the log, oldest first.
func (c *Conversation) Reminders() []Reminder { return c.reminders }

// Head returns the seq of the newest event that was appended.
func (c *Conversation) Head() eventlog.Seq { return c.head }

// Turns returns how many model calls the log has.
func (c *Conversation) Turns() uint32 { return c.turns }

// Tokens returns the size of all groups, unreduced.
func (c *Conversation) Tokens() uint64 { return c.tokens }

// Chars returns the length of all groups, unreduced, in runes.
func (c *Conversation) Chars() int { return c.chars }

// eventOverhead is about how many bytes of memory an event takes besides its content.
const eventOverhead = 768

// Bytes returns about how many bytes of memory the conversation takes: its events and caches.
func (c *Conversation) Bytes() int {
	return c.bytes + c.texts.bytes() + c.cached.bytes() + c.reach.bytes()
}

// Gauge returns the gauge that counts the conversation's tokens.
func (c *Conversation) Gauge() budget.Gauge { return c.gauge }

// Append adds the next event of the log. It must follow the head directly, and must have been admitted by
// eventlog.Head.Admit.
func (c *Conversation) Append(e eventlog.Event) {
	e = c.filtered(e)
	c.head = e.Seq
	c.turns = e.Turn
	c.bytes += int(eventlog.Size(e)) + eventOverhead
	c.lastAt.observe(e)
	c.observeLive(e)
	switch b := e.Body.(type) {
	case *eventlog.Message:
		c.appendMessage(e, b)
	case *eventlog.Reminder:
		tokens := uint64(budget.MessageOverhead) + c.gauge.Text(b.Body)
		c.reminders = append(c.reminders, Reminder{Reminder: b, EventID: e.ID, Seq: e.Seq, Turn: e.Turn, Tokens: tokens})
	case *eventlog.Compaction:
		c.missing = c.missing || c.begun != nil && b.Decision != nil
		c.compactions.read(e, c.lastHuman)
	}
}

func (c *Conversation) appendMessage(e eventlog.Event, m *eventlog.Message) {
	blocks := c.blocks(e, m)
	c.noteNames(e, m)
	if m.Role == eventlog.RoleAssistant {
		c.sources.add(e.Seq, []int{c.appendAssistant(e, m, blocks)})
		return
	}
	var groups []int
	rest := blocks[:0:0]
	for _, b := range blocks {
		if r, ok := b.Block.(eventlog.ToolResult); !ok {
			rest = append(rest, b)
		} else if i, ok := c.answer(e, r, b, m.Pinned); ok {
			groups = append(groups, i)
		}
	}
	if len(rest) > 0 {
		groups = append(groups, c.appendRest(e, m, rest))
	}
	c.sources.add(e.Seq, groups)
}

// appendRest adds the blocks of a system or user message that are no results, and returns their group.
func (c *Conversation) appendRest(e eventlog.Event, m *eventlog.Message, rest []Block) int {
	msg := c.message(m.Role, rest, e.Seq, m.Model)
	var human eventlog.Seq
	if m.Role == eventlog.RoleUser && !e.Injected() {
		msg.Human, human = true, e.Seq
	}
	i, ok := c.lookup(m.GroupID)
	if ok {
		c.replace(i, func(g *Group) {
			if g.assistant == 0 {
				g.insert(len(g.Messages), msg)
			} else {
				c.rest[i] = append(c.rest[i], msg)
				g.count(msg)
			}
			g.Last = e.Seq
			g.Pinned = g.Pinned || m.Pinned
			g.Human = max(g.Human, human)
			if !e.Injected() {
				g.Standing = ""
			}
			g.label(e.Labels)
		})
	} else {
		g := &Group{
			Kind: KindUser, Turn: e.Turn, First: e.Seq, Last: e.Seq, Pinned: m.Pinned, Human: human,
			Messages: []Message{msg}, Tokens: msg.Tokens, Chars: msg.Chars, Labels: maps.Clone(e.Labels),
		}
		if e.Injected() {
			g.Standing = e.Labels[eventlog.LabelStanding]
		}
		if m.Role == eventlog.RoleSystem {
			g.Kind = KindSystem
			g.Anchor = c.onlySystem()
		}
		i = c.add(g, m.GroupID)
	}
	if human > 0 {
		c.lastHuman = c.groups[i].First
	}
	if m.Role == eventlog.RoleUser {
		c.anchor(i, msg.Human)
	}
	return i
}

// onlySystem reports whether the log has nothing but the system prompt so far.
func (c *Conversation) onlySystem() bool {
	return len(c.groups) == 0 || c.groups[len(c.groups)-1].Kind == KindSystem && c.groups[len(c.groups)-1].Anchor
}

// appendAssistant adds an assistant's message, or a part of one, and returns its group.
func (c *Conversation) appendAssistant(e eventlog.Event, m *eventlog.Message, blocks []Block) int {
	i, ok := c.lookup(m.GroupID)
	if !ok {
		i = c.add(&Group{Kind: KindTurn, Turn: e.Turn, First: e.Seq}, m.GroupID)
	}
	at := int(c.groups[i].assistant) - 1
	c.countSent(blocks, i, at, m.Model)
	c.replace(i, func(g *Group) {
		g.Kind = KindTurn
		g.Standing = ""
		g.Last = e.Seq
		g.Pinned = g.Pinned || m.Pinned
		g.label(e.Labels)
		if at < 0 {
			at = len(g.Messages)
			g.insert(at, c.message(m.Role, blocks, e.Seq, m.Model))
			g.assistant = uint32(len(g.Messages))
		} else {
			more := g.Messages[at]
			more.add(blocks, e.Seq)
			g.set(at, more)
		}
		for _, b := range blocks {
			switch b := b.Block.(type) {
			case eventlog.ToolCall:
				c.addCall(i, g, at, b)
				c.open[b.CallID] = openCall{i, len(g.Calls) - 1}
			case eventlog.Thinking:
				g.Sealed = g.Sealed || b.Sealed()
			}
		}
		c.bound = c.bound || g.Messages[at].bound
	})
	return i
}

// openCall is a call without a result: its group, and its index in the group's calls.
type openCall struct{ group, call int }

// addCall adds a call with a synthetic result to group i, after the results of the calls before it. The real result
// later replaces the synthetic one.
func (c *Conversation) addCall(i int, g *Group, assistant int, call eventlog.ToolCall) {
	at := assistant + 1 + len(g.Calls)
	if at < len(g.Messages) {
		c.rest[i] = append(slices.Clone(g.Messages[at:]), c.rest[i]...)
		g.Messages = g.Messages[:at]
	}
	result := eventlog.ToolResult{CallID: call.CallID, ToolName: call.Name, Content: []eventlog.Block{eventlog.Text{Text: InterruptedText}}, IsError: true}
	msg := c.message(eventlog.RoleTool, []Block{{Block: result, Tokens: c.gauge.Block(result)}}, 0, "")
	g.insert(at, msg)
	g.Calls = append(g.Calls, Call{ID: call.CallID, Name: call.Name, Arguments: call.Arguments, Repeat: c.made[call.CallID], Result: at, Interrupted: true})
	c.made[call.CallID]++
}

// answer replaces the synthetic result of a call by the real one, and returns the group of the call. A pinned result
// pins that group.
func (c *Conversation) answer(e eventlog.Event, r eventlog.ToolResult, b Block, pinned bool) (group int, ok bool) {
	at, ok := c.open[r.CallID]
	if !ok {
		c.missing = c.missing || c.begun != nil && slices.Contains(c.begun.OpenCalls, r.CallID)
		return 0, false // Admit refuses such a result; a forgotten call's result has no place
	}
	delete(c.open, r.CallID)
	c.replace(at.group, func(g *Group) {
		call := &g.Calls[at.call]
		if r.ToolName == "" {
			r.ToolName = call.Name
		}
		b.Block = r
		g.set(call.Result, c.message(eventlog.RoleTool, []Block{b}, b.Seq, ""))
		call.Interrupted, call.IsError = false, r.IsError
		call.Body, call.Seq, call.Block, call.Turn = textOf(r.Content), b.Seq, b.Index, c.turns
		call.returned = c.results.add(call, &g.Messages[call.Result])
		g.Last = max(g.Last, b.Seq)
		g.Pinned = g.Pinned || pinned
		g.label(e.Labels)
		if call.Turn > g.Turn {
			g.late = b.Seq
			c.late = append(c.late, lateResult{b.Seq, g.First})
		}
	})
	return at.group, true
}

func (c *Conversation) lookup(groupID string) (int, bool) {
	if groupID == "" {
		return 0, false
	}
	i, ok := c.byGroupID[groupID]
	return i, ok
}

func (c *Conversation) add(g *Group, groupID string) int {
	c.groups = append(c.groups, g)
	c.tokens += g.Tokens
	c.chars += g.Chars
	i := len(c.groups) - 1
	if groupID != "" {
		c.byGroupID[groupID] = i
	}
	return i
}

// message makes a message of an event's blocks; with seq 0 it is synthetic.
func (c *Conversation) message(role eventlog.Role, blocks []Block, seq eventlog.Seq, model string) Message {
	m := Message{Role: role, Blocks: blocks, Model: model, Tokens: budget.MessageOverhead}
	if seq != 0 {
		m.Seqs = []eventlog.Seq{seq}
	}
	m.measure(blocks)
	return m
}

// blocks gives each block its place and its size. It uses the counts that are stored with the event if this gauge
// made them, or its tokenizer without the format's framing; otherwise it counts.
func (c *Conversation) blocks(e eventlog.Event, m *eventlog.Message) []Block {
	all := make([]Block, len(m.Blocks))
	whole := len(e.Tokens.Blocks) == len(m.Blocks)
	counted := whole && e.Tokens.Tokenizer == c.gauge.Name()
	unframed := whole && e.Tokens.Tokenizer == c.gauge.Tokenizer()
	for i, b := range m.Blocks {
		all[i] = Block{Block: b, Seq: e.Seq, Index: i, Injected: e.InjectedBlock(i)}
		switch {
		case counted:
			all[i].Tokens = uint64(e.Tokens.Blocks[i])
		case unframed:
			all[i].Tokens = c.gauge.Reframed(b, uint64(e.Tokens.Blocks[i]))
		default:
			all[i].Tokens = c.gauge.Block(b)
		}
	}
	return all
}

// opening is the first message of a human or, before there is one, the first message with the user's role.
type opening struct {
	// group is its index, or -1.
	group int
	human bool
	// anchored is set when the group would be in the anchor without this message, too.
	anchored bool
}

// anchor records that group i has a user's message. The first such group joins the anchor; if the runtime
// wrote it, the first group with a human's message takes its place there.
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
