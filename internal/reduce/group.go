package reduce

import (
	"maps"
	"unicode/utf8"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Kind says what a group is.
type Kind uint8

// The kinds of group.
const (
	KindSystem Kind = iota + 1
	KindUser
	KindTurn // an assistant message with all results that answer it
)

// Group is an atomic unit of the conversation: nothing ever splits it. Groups
// are immutable; a late result makes a new Group in the old one's place.
type Group struct {
	Kind Kind
	// Turn is how many model calls had begun at the group's first event.
	Turn uint32
	// First and Last are the lowest and highest seq of its events.
	First, Last eventlog.Seq
	Pinned      bool
	// Anchor groups are the system prompt and the first human message, or where no human
	// has said anything the first user message.
	Anchor bool
	// Opens is set when it holds the first user message, whoever wrote it.
	Opens bool
	// Human is the newest event of it that is a human's message; 0 if none is.
	Human eventlog.Seq
	// Standing is what an injected group tells of until a newer one does; empty for all
	// others.
	Standing string
	// Messages are in the order in which they are rendered: the assistant message
	// first, then one tool message per call in the order of the calls.
	Messages []Message
	Calls    []Call
	// Tokens is the size of all messages, their overhead included.
	Tokens uint64
	// Chars is the length of what the messages show, in runes.
	Chars int
	// Sealed is set when a block is signed, redacted or encrypted reasoning.
	Sealed bool
	// Labels are those of its events; where they differ, the latest counts. The map must
	// not be changed.
	Labels map[string]string
}

// label adds the labels of an event.
func (g *Group) label(more map[string]string) {
	if len(more) == 0 {
		return
	}
	all := make(map[string]string, len(g.Labels)+len(more))
	maps.Copy(all, g.Labels)
	maps.Copy(all, more)
	g.Labels = all
}

// Message is a message of a group as it would be rendered in full.
type Message struct {
	Role eventlog.Role
	// Human is set when a human wrote it: it has the user's role, and no runtime put it in.
	Human  bool
	Blocks []Block
	Model  string
	// Seqs are the events it is made of, ascending; empty for a synthetic result.
	Seqs   []eventlog.Seq
	Tokens uint64
	Chars  int
}

// Block is a block with its place in the log.
type Block struct {
	Block  eventlog.Block
	Seq    eventlog.Seq // 0 for a synthetic result
	Index  int          // of the block in its event's message
	Tokens uint64
}

// Call is a tool call of a group and where its answer stands.
type Call struct {
	ID, Name, Arguments string
	// Repeat is how many earlier calls of the log have the same ID.
	Repeat uint32
	// Result is the index in Messages of the tool message that answers it.
	Result int
	// Interrupted is set when the log holds no result: the one in Messages is
	// synthetic.
	Interrupted bool
	IsError     bool
	// Body, Seq and Turn are the result's text, event and turn, which is later than
	// the call's where the result is late; Seq is 0 if interrupted.
	Body string
	Seq  eventlog.Seq
	Turn uint32
	// Block is the result's index in its event.
	Block int
}

// InterruptedText is the body of a synthetic result.
const InterruptedText = "[contextd: this call was interrupted; the log holds no result for it]"

// Chars is the length of what a block shows, in runes: text, reasoning,
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

// BodyText is the text of a block: a text itself, the text of a result's content
// joined by line feeds, or empty.
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
