package evaluate

import (
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/render"
)

// Prompt is what the model is sent before one call.
type Prompt struct {
	JSON   []byte // JSON lines
	Text   string // what the model reads, with a NUL after each block
	Hash   string // of JSON, where a daemon made it
	Tokens uint64
	// Visible is how many of the log's calls are in full, stubbed or counted in a ledger.
	Visible int
	Cause   string // of a changed prefix
	Refused string // why there is no prompt
	// Messages are what JSON is made of; nil where a daemon made it.
	Messages []Message
}

// Message is one message of a prompt.
type Message struct {
	// End is where its line ends in the prompt's JSON.
	End    int
	Tokens uint64
	// Cause is the reducer that last changed it; empty if it is as in the log.
	Cause string
}

// builder gathers messages.
type builder struct {
	Prompt
	plain []byte
}

// add appends a message that takes so many tokens.
func (b *builder) add(m render.Message, tokens uint64) {
	b.JSON = append(render.AppendJSON(b.JSON, m), '\n')
	for _, block := range m.Blocks {
		b.plain = append(append(b.plain, plain(block)...), 0)
	}
	b.Messages = append(b.Messages, Message{End: len(b.JSON), Tokens: tokens, Cause: m.Cause})
}

// addFull appends a message of a group as it is in the log.
func (b *builder) addFull(m *reduce.Message) { b.add(fullMessage(m), m.Tokens) }

func (b *builder) done() Prompt {
	b.Text = string(b.plain)
	return b.Prompt
}

func fullMessage(m *reduce.Message) render.Message {
	r := render.Message{Role: m.Role, Seqs: m.Seqs}
	for _, b := range m.Blocks {
		r.Blocks = append(r.Blocks, b.Block)
	}
	return r
}

// countBlocks is what a message of these blocks takes.
func countBlocks(gauge budget.Accountant, blocks []eventlog.Block) uint64 {
	n := uint64(budget.MessageOverhead)
	for _, b := range blocks {
		n += gauge.Block(b)
	}
	return n
}
