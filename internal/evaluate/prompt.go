package evaluate

import (
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
	// Digest is the size in tokens of what replaces dropped messages, and Summary that of the
	// summary in it; 0 where there is none.
	Digest, Summary uint64
	Cause           string // of a changed prefix
	Refused         string // why there is no prompt
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

// builder gathers messages of a log.
type builder struct {
	Prompt
	log   *Log
	plain []byte
}

// add appends a message that takes so many tokens.
func (b *builder) add(m render.Message, tokens uint64) {
	var first eventlog.Place
	if len(m.Places) > 0 {
		first = m.Places[0]
	}
	w := b.log.write(m, first, first.Seq > 0 && m.Cause == "" && m.Origin == render.Verbatim)
	b.JSON, b.plain = append(b.JSON, w.json...), append(b.plain, w.plain...)
	b.Messages = append(b.Messages, Message{End: len(b.JSON), Tokens: tokens, Cause: m.Cause})
}

// addFull appends a message of a group as it is in the log.
func (b *builder) addFull(m *reduce.Message) { b.add(fullMessage(m), m.Tokens) }

// Prompt is the prompt of messages that somebody else made of the log, with the tokens of each.
func (l *Log) Prompt(messages []render.Message) Prompt {
	b := builder{log: l}
	for _, m := range messages {
		b.add(m, m.Tokens)
		b.Tokens += m.Tokens
	}
	return b.done()
}

func (b *builder) done() Prompt {
	b.Text = string(b.plain)
	return b.Prompt
}

func fullMessage(m *reduce.Message) render.Message {
	r := render.Message{Role: m.Role, Seqs: m.Seqs, Origin: render.Verbatim}
	for _, b := range m.Blocks {
		r.Blocks = append(r.Blocks, b.Block)
		r.Places = append(r.Places, eventlog.Place{Seq: b.Seq, Block: b.Index})
	}
	return r
}
