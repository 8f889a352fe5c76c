package evaluate

import (
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/render"
)

// Prompt is the prompt of one model call.
type Prompt struct {
	JSON   []byte // JSON lines
	Text   string // what the model reads, with a NUL after each block
	Hash   string // of JSON, if a daemon made it
	Tokens uint64
	// Visible counts the log's calls that it shows in full, stubbed or in a ledger.
	Visible int
	// Digest is the size of the digest, and Summary of the summary in it, in tokens; 0 if there is none.
	Digest, Summary uint64
	Cause           string // why the previous prompt is no prefix of it
	Refused         string // why there is no prompt
	// Messages are the messages of JSON; nil if a daemon made the prompt.
	Messages []Message
}

// Message is one message of a prompt.
type Message struct {
	// End is the end of its line in the prompt's JSON.
	End    int
	Tokens uint64
	// Cause is the reducer that last changed it; empty if it is as in the log.
	Cause string
	// first is the place of its first block; zero if that is not from the log.
	first eventlog.Place
}

// builder builds a prompt from messages.
type builder struct {
	Prompt
	log   *Log
	plain []byte
}

// add appends a message of the given size.
func (b *builder) add(m render.Message, tokens uint64) {
	var first eventlog.Place
	if len(m.Places) > 0 {
		first = m.Places[0]
	}
	w := b.log.write(m, first, first.Seq > 0 && m.Cause == "" && m.Origin == render.Verbatim)
	b.JSON, b.plain = append(b.JSON, w.json...), append(b.plain, w.plain...)
	b.Messages = append(b.Messages, Message{End: len(b.JSON), Tokens: tokens, Cause: m.Cause, first: first})
}

// addFull appends a message of a group as it is in the log.
func (b *builder) addFull(m *reduce.Message) { b.add(fullMessage(m), m.Tokens) }

// Prompt makes a prompt of messages that the caller rendered from the log. Their Tokens must be set.
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
