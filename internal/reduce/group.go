package reduce

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/contextd/contextd/internal/ledger"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/provider"
)

// Kind is the kind of a group; 0 if only its place and size are known.
type Kind uint8

// The kinds of group.
const (
	KindSystem Kind = iota + 1
	KindUser
	KindTurn // an assistant message with all results that answer it
)

// Group is an atomic unit of the conversation: nothing splits it. A group that a caller has is immutable: a late
// result makes a new Group in its place.
type Group struct {
	Kind Kind
	// Turn is how many model calls had begun at the group's first event.
	Turn uint32
	// First and Last are the lowest and highest seq of its events.
	First, Last eventlog.Seq
	Pinned      bool
	// Anchor is set for the system prompt and the first human message or, while no human has said anything, the first
	// message with the user's role.
	Anchor bool
	// Opens is set if the group has the first message with the user's role, whoever wrote it.
	Opens bool
	// assistant is the number, from 1, of the assistant's message; 0 if there is none.
	assistant uint32
	// Human is the group's newest event with a human's message; 0 if there is none.
	Human eventlog.Seq
	// Standing is the name of a standing group: it holds until a newer one of that name comes. It is empty for all
	// other groups.
	Standing string
	// Messages are in the order in which they are rendered: first the assistant message, then one tool message for
	// each call, in the order of the calls.
	Messages []Message
	Calls    []Call
	// Tokens is the size of all messages, including their overhead.
	Tokens uint64
	// Chars is the length of what the messages show, in runes.
	Chars int
	// Sealed is set if a block is signed, redacted or encrypted reasoning.
	Sealed bool
	// Labels are the labels of its events; of several values the newest event's counts. Callers must not change the
	// map.
	Labels map[string]string
	// changed is the newest event that changed the group; 0 if only its first event did.
	changed eventlog.Seq
	// late is the event of the newest late result, which came after a further model call had begun; 0 if there is
	// none.
	late eventlog.Seq
}

// label adds the labels of an event.
func (g *Group) label(more map[string]string) {
	if len(more) == 0 {
		return
	}
	if g.Labels == nil {
		g.Labels = make(map[string]string, len(more))
	}
	maps.Copy(g.Labels, more)
}

// insert inserts a message at an index.
func (g *Group) insert(at int, m Message) {
	g.Messages = slices.Insert(g.Messages, at, m)
	g.count(m)
}

// count adds the size of a message to that of the group.
func (g *Group) count(m Message) {
	g.Tokens += m.Tokens
	g.Chars += m.Chars
}

// set replaces the message at an index.
func (g *Group) set(at int, m Message) {
	old := &g.Messages[at]
	g.Tokens += m.Tokens - old.Tokens
	g.Chars += m.Chars - old.Chars
	*old = m
}

// Message is a message of a group as it would be rendered in full.
type Message struct {
	Role eventlog.Role
	// Human is set if a human wrote it: it has the user's role and the runtime did not inject it.
	Human  bool
	Blocks []Block
	Model  string
	// Seqs are the events that it is made of, ascending; empty for a synthetic result.
	Seqs   []eventlog.Seq
	Tokens uint64
	Chars  int
	// thinks is set if a block is reasoning, bound if its provider binds it to what was before it.
	thinks, bound bool
}

// answers reports whether the message is a model's or a tool's. Such messages belong together and are only
// dropped together.
func (m *Message) answers() bool {
	return m.Role == eventlog.RoleAssistant || m.Role == eventlog.RoleTool
}

// add appends the blocks of a further event. Earlier copies of the message do not have them.
func (m *Message) add(blocks []Block, seq eventlog.Seq) {
	m.Blocks, m.Seqs = append(m.Blocks, blocks...), append(m.Seqs, seq)
	m.measure(blocks)
}

// measure adds the sizes of blocks to those of the message.
func (m *Message) measure(blocks []Block) {
	for _, b := range blocks {
		m.Tokens += b.Tokens
		m.Chars += Chars(b.Block)
		m.thinks, m.bound = m.thinks || isThinking(b), m.bound || m.isBound(b)
	}
}

// Block is a block with its place in the log.
type Block struct {
	Block  eventlog.Block
	Seq    eventlog.Seq // 0 for a synthetic result
	Index  int          // of the block in its event's message
	Tokens uint64
	// Injected is set if the runtime inserted this block into the message.
	Injected bool
}

// countSent reduces the sizes of blocks that a model wrote to what is sent of them. They join the message at an index of
// group i, whose model is that of its first event; -1 is a new message.
func (c *Conversation) countSent(blocks []Block, i, at int, model string) {
	if at >= 0 {
		model = c.groups[i].Messages[at].Model
	}
	for j, b := range blocks {
		blocks[j].Tokens = c.gauge.Sent(b.Block, model, b.Tokens)
	}
}

// Call is a tool call of a group, with the place of its result.
type Call struct {
	ID, Name, Arguments string
	// Repeat is how many earlier calls of the log have the same ID.
	Repeat uint32
	// Result is the index in Messages of the tool message that answers it.
	Result int
	// Interrupted is set while the log has no result of the call: the one in Messages is synthetic.
	Interrupted bool
	IsError     bool
	// Body, Seq and Turn are the text, event and turn of the result. A late result has a later turn than
	// its call. Seq is 0 if interrupted.
	Body string
	Seq  eventlog.Seq
	Turn uint32
	// Block is the result's index in its event.
	Block int
	// returned is the number of the result: see results.
	returned int
}

// Place returns the place of the call's result.
func (c *Call) Place() eventlog.Place { return eventlog.Place{Seq: c.Seq, Block: c.Block} }

// InterruptedText is the body of a synthetic result.
const InterruptedText = "[contextd: this call was interrupted; the log holds no result for it]"

// Chars returns the length of what a block shows, in runes: text, reasoning,
// arguments and the text of results.
func Chars(b eventlog.Block) int {
	switch b := b.(type) {
	case eventlog.Text:
		return utf8.RuneCountInString(b.Text)
	case eventlog.Thinking:
		return utf8.RuneCountInString(b.Text)
	case eventlog.ToolCall:
		return utf8.RuneCountInString(b.Arguments)
	case eventlog.ToolResult:
		n := 0
		for _, c := range b.Content {
			n += Chars(c)
		}
		return n
	case eventlog.ProviderBlock:
		return utf8.RuneCountInString(b.JSON)
	default:
		return 0
	}
}

// BodyText returns the text of a text block, or the texts of a result joined by line feeds; it is empty for other
// blocks.
func BodyText(b eventlog.Block) string {
	switch b := b.(type) {
	case eventlog.Text:
		return b.Text
	case eventlog.ToolResult:
		return textOf(b.Content)
	default:
		return ""
	}
}

// SealedBy returns the provider whose rules apply to a group with sealed reasoning. It is Unknown if its blocks name
// several, or if none is sealed.
func (g *Group) SealedBy() provider.Provider {
	if !g.Sealed {
		return provider.Unknown
	}
	by, found := provider.Unknown, false
	for m := range g.Messages {
		for b := range g.Messages[m].Blocks {
			t, ok := g.Messages[m].Blocks[b].Block.(eventlog.Thinking)
			if !ok || !t.Sealed() {
				continue
			}
			one := provider.OfBlock(t, g.Messages[m].Model)
			if one == provider.Host { // which passes on what the model's maker requires
				one = provider.Of(g.Messages[m].Model)
			}
			if found && one != by {
				return provider.Unknown
			}
			by, found = one, true
		}
	}
	return by
}

// textOf joins the text of a result's content.
func textOf(content []eventlog.Block) string {
	if len(content) == 1 {
		if t, ok := content[0].(eventlog.Text); ok {
			return t.Text
		}
	}
	var all []string
	for _, b := range content {
		if t, ok := b.(eventlog.Text); ok {
			all = append(all, t.Text)
		}
	}
	return strings.Join(all, "\n")
}

// outlasts reports whether the group may stay although groups after it are dropped.
func (g *Group) outlasts() bool { return g.Anchor || g.Human > 0 }

// isLive reports whether the group holds a version of the agent's plan or scratchpad.
func (g *Group) isLive() bool { return isLive(g.Standing) }

// collapses reports whether the group may be dropped with a run that ends at through.
func (g *Group) collapses(through eventlog.Seq) bool {
	return g.First <= through && !g.Anchor && !g.Pinned
}

// isSystemPrompt reports whether the group is a part of the system prompt that may
// be clipped.
func (g *Group) isSystemPrompt() bool { return g.Kind == KindSystem && g.Anchor && !g.Pinned }

// texts returns the group's text blocks.
func (g *Group) texts() iter.Seq[Block] {
	return func(yield func(Block) bool) {
		for m := range g.Messages {
			for _, b := range g.Messages[m].Blocks {
				if _, ok := b.Block.(eventlog.Text); ok && !yield(b) {
					return
				}
			}
		}
	}
}

// endsLoop reports whether the group has a user's message of event asOf or before, which ends the tool-use loop
// before it. A turn may have one, too, because an assistant's message may have joined the user's later.
func (g *Group) endsLoop(asOf eventlog.Seq) bool {
	return g.First <= asOf && (g.Kind == KindUser || slices.ContainsFunc(g.Messages, func(m Message) bool {
		return m.Role == eventlog.RoleUser && m.Seqs[0] <= asOf
	}))
}

// media yields the message and block indexes of media and provider blocks in messages of users and the
// system that are larger than their limits.
func (g *Group) media(limits clipLimits) iter.Seq2[int, int] {
	return func(yield func(message, block int) bool) {
		if g.Pinned {
			return
		}
		for m := range g.Messages {
			if g.Messages[m].answers() {
				continue
			}
			for i, b := range g.Messages[m].Blocks {
				_, text := b.Block.(eventlog.Text)
				if limit := limits.at(b.Seq); !text && limit > 0 && b.Tokens > limit && !yield(m, i) {
					return
				}
			}
		}
	}
}

// shownTokens returns the size of the group without the media that descriptions replace.
func (g *Group) shownTokens(limits clipLimits) uint64 {
	shown := g.Tokens
	for m, b := range g.media(limits) {
		shown -= g.Messages[m].Blocks[b].Tokens
	}
	return shown
}

// textTokens returns the sizes of the group's text blocks.
func (g *Group) textTokens() []uint64 {
	var out []uint64
	for b := range g.texts() {
		out = append(out, b.Tokens)
	}
	return out
}

// list adds the calls of the group to a ledger; a sorted ledger also needs the members of their arguments.
func (g *Group) list(calls *ledger.Calls, sorted bool) {
	for i := range g.Calls {
		entry := g.Calls[i].shortEntry()
		entry.Detail = ledger.Detail(g.Calls[i].Arguments)
		if sorted {
			entry.Members = ledger.Members(g.Calls[i].Arguments)
		}
		calls.Add(entry)
	}
}

// shortEntries returns the ledger's entries for the calls of the group, with shortened arguments.
func (g *Group) shortEntries() []ledger.Call {
	entries := make([]ledger.Call, len(g.Calls))
	for i := range g.Calls {
		entries[i] = g.Calls[i].shortEntry()
	}
	return entries
}

// shortEntry returns the ledger's entry for the call, with shortened arguments.
func (c *Call) shortEntry() ledger.Call {
	entry := ledger.Call{Tool: c.Name, Arguments: ledger.Shorten(c.Arguments)}
	switch {
	case c.Interrupted:
		entry.Outcome = ledger.Interrupted
	case c.IsError:
		entry.Outcome = ledger.Failed
	}
	entry.Pointer = c.pointer()
	return entry
}

// Memo caches a value for each group. Groups never change, so a caller that needs the same values with every request
// computes only those of new groups. It is not safe for concurrent use. The zero value is empty and ready.
type Memo[T any] struct{ kept map[*Group]*T }

// Of returns the cached value of a group. If there is none, it caches and returns a new zero T.
func (m *Memo[T]) Of(g *Group) *T {
	t, ok := m.kept[g]
	if !ok {
		if m.kept == nil {
			m.kept = map[*Group]*T{}
		}
		t = new(T)
		m.kept[g] = t
	}
	return t
}

// Prune forgets all groups except those given, if the others are the majority.
func (m *Memo[T]) Prune(groups []*Group) {
	const slack = 64
	if len(m.kept) <= 2*len(groups)+slack {
		return
	}
	kept := make(map[*Group]*T, len(groups))
	for _, g := range groups {
		if t, ok := m.kept[g]; ok {
			kept[g] = t
		}
	}
	m.kept = kept
}
