package render

import (
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

// Origin says where a rendered message comes from.
type Origin uint8

// The origins of a message.
const (
	Verbatim Origin = iota + 1
	Stubbed
	Clipped
	Redacted
	Summary
	Reminder
	Injected
)

// Message is one message as the model will see it, before a format encodes it.
type Message struct {
	Role   eventlog.Role
	Origin Origin
	// ReturnReasoning is set where the model that is asked wants reasoning back as text.
	ReturnReasoning bool
	// Unreasoned is set where a reducer left out reasoning.
	Unreasoned bool
	// Digest is set on what replaces the dropped run.
	Digest bool
	// Model is the model that wrote an assistant message, and Asked the one that gets the context, as far as they are known.
	Model, Asked string
	Blocks       []eventlog.Block
	// Places are where the blocks are in the log, one for each block; nil for what is
	// not from the log, and zero for a block that is not.
	Places []eventlog.Place
	// Repeats is how often the log used a block's call id before, one for each block; nil if no id was used before.
	Repeats []uint32
	// Seqs are the events it renders, ascending; empty for what contextd wrote.
	Seqs   []eventlog.Seq
	Tokens uint64
	// Cause is the reducer that last changed the message, for reports.
	Cause string
	// Recall is the tool with which the model can read what the format cannot carry.
	Recall reduce.Recall
}

// place is where block i is in the log.
func (m *Message) place(i int) eventlog.Place {
	if i < len(m.Places) {
		return m.Places[i]
	}
	return eventlog.Place{}
}

// callID is the id of the call that block i makes or answers, in the providers' formats.
func (m *Message) callID(i int, id string) string {
	if i < len(m.Repeats) {
		return WireCallID(id, m.Repeats[i])
	}
	return WireCallID(id, 0)
}

// Injection is per-turn content of the runtime. It is not part of the log.
type Injection struct {
	Name   string
	Blocks []eventlog.Block
	// ReserveTokens is how much of the budget's injection reserve it may take.
	ReserveTokens uint64
}
