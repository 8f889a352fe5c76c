package render

import eventlog "github.com/contextd/contextd/internal/log"

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
	Blocks []eventlog.Block
	Origin Origin
	// Seqs are the events it renders, ascending; empty for what contextd wrote.
	Seqs   []eventlog.Seq
	Tokens uint64
	// Cause is the reducer that last changed the message, for reports.
	Cause string
}

// Injection is per-turn content of the runtime. It is not part of the log.
type Injection struct {
	Name   string
	Blocks []eventlog.Block
	// ReserveTokens is how much of the budget's injection reserve it may take.
	ReserveTokens uint64
}
