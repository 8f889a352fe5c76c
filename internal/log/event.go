package log

import (
	"strconv"
	"strings"
	"time"
)

// Seq is the position of an event in its session: from 1, without gaps. 0 means "before the first event".
type Seq uint64

// Event is one entry of the log. After it was appended nobody may change it or what its fields refer to, because
// readers share it.
type Event struct {
	// The log sets Seq and Turn when it admits the event.
	Seq Seq
	// Turn is how many model calls had begun when the event was appended, counting the one that the event itself may
	// begin.
	Turn uint32
	// ID makes an append idempotent: it is unique within the session, and never empty in a stored event.
	ID string
	// Time is when the event happened, in UTC. The client sets it, or the daemon on receipt.
	Time   time.Time
	Labels map[string]string
	Body   Body
	// Tokens are the counts taken when the event was appended. They are derived data, and no part of the event's
	// identity (see Digest).
	Tokens TokenCounts
}

// Body is what an event carries: *Message, *Reminder, *Compaction or *Custom.
type Body interface{ body() }

func (*Message) body()    {}
func (*Reminder) body()   {}
func (*Compaction) body() {}
func (*Custom) body()     {}

// Role says who wrote a message.
type Role uint8

// The roles of a message. No stored message has RoleUnspecified. As a reminder's RoleHint it means "no preference".
const (
	RoleUnspecified Role = iota
	RoleSystem
	RoleUser
	RoleAssistant
	RoleTool
)

// String returns the role's name in rendered messages.
func (r Role) String() string {
	switch r {
	case RoleSystem:
		return "system"
	case RoleUser:
		return "user"
	case RoleAssistant:
		return "assistant"
	case RoleTool:
		return "tool"
	default:
		return "unspecified"
	}
}

// Message is one message of the conversation, or a part of one: the parts of a single API message share a GroupID.
type Message struct {
	Role    Role
	Blocks  []Block
	GroupID string
	// Model is the model that wrote an assistant message, by the runtime's name for it; empty if unknown.
	Model string
	// Pinned messages are never reduced.
	Pinned bool
}

// Reminder is a note of the runtime. While it lives, it is rendered after the conversation.
type Reminder struct {
	Body string
	// TTLTurns is how many model calls see the reminder; nil is all of them until a newer reminder replaces it.
	TTLTurns *uint32
	// DedupeKey, if not empty, causes a newer reminder with the same key to replace this one.
	DedupeKey         string
	PreserveOnCompact bool
	RoleHint          Role
	Tags              []string
	Source            string
}

// CompactionTrigger says what caused a compaction.
type CompactionTrigger uint8

// The triggers of a compaction.
const (
	TriggerUnspecified CompactionTrigger = iota
	TriggerManual
	TriggerThreshold
	TriggerBudgetPressure
)

// Compaction is a boundary: here a harness, or contextd, replaced the oldest part of the conversation that the model
// sees. The log keeps all of it.
type Compaction struct {
	Trigger CompactionTrigger
	Summary string
	// PreTokens and PostTokens are the context's size before and after the compaction, as counted by whoever made it;
	// nil if unknown.
	PreTokens, PostTokens *uint64
	// KeptEventIDs are the events that stayed verbatim.
	KeptEventIDs []string
	Mode         string
	Strategy     string
	// NativeJSON is the harness's own record of the boundary, unchanged.
	NativeJSON string
	// Decision is what a caller of contextd decided for the session; nil in a harness's boundary.
	Decision *CompactionDecision
}

// CompactionDecision says what contexts no longer show in full, from the compaction's event on, because a caller
// decided so. It is complete: it repeats what earlier compactions of the session decided.
type CompactionDecision struct {
	// Through is the event up to which groups were dropped; 0 if none were.
	Through Seq
	// DigestTokens is the context size, in tokens, of which the shares of the digest's parts are taken.
	DigestTokens uint64
	// Kept are groups up to Through that are kept nonetheless: the first event of each, in ascending order.
	Kept []Seq
	// LateAfter concerns late results: those that were appended after a further model call had begun. A late result
	// after event LateAfter keeps the group of its call in view, even a group up to Through. 0 if no result does.
	LateAfter Seq
	// Masked are the results that are shown as pointers.
	Masked []Place
	// SummaryID is the id of the text in Compaction.Summary, SummaryThrough the last event that it covers, and
	// SummaryBy who wrote it; empty and 0 if there is no summary.
	SummaryID      string
	SummaryThrough Seq
	SummaryBy      string
	// Undoes is the compaction that is taken back, with every later one; 0 takes none back. If it is set, no other
	// field is.
	Undoes Seq
}

// Custom is an event of the client's own. It is never rendered.
type Custom struct {
	Type string
	JSON string
}

// TokenCounts are an event's token counts under one tokenizer.
type TokenCounts struct {
	// Tokenizer names the counter; empty if the event was not counted.
	Tokenizer string
	// Blocks holds one count per block of the message, in order. For events
	// without blocks it has one entry for the whole body, or none.
	Blocks []uint32
	// Estimated is set if any of the counts is an estimate.
	Estimated bool
}

// Total returns the sum over all blocks, without what a message adds to its blocks.
func (t TokenCounts) Total() uint64 {
	var sum uint64
	for _, n := range t.Blocks {
		sum += uint64(n)
	}
	return sum
}

// The labels of an event that contextd reads. It does not interpret any others.
const (
	// LabelInjected is "true" on a message that the runtime inserted, not a human or a model.
	LabelInjected = "harness.injected"
	// LabelInjectedBlocks lists the indexes of the blocks that the runtime inserted into a human's message: "1,2".
	LabelInjectedBlocks = "harness.injected_blocks"
	// LabelStanding names the subject of an injected message, such as "AGENTS.md" or "environment". The message holds
	// until a newer one of the same name. An injected message without this label is a notification.
	LabelStanding = "harness.standing"
	// LabelOwnPrompt is "true" on a model's message that answers a prompt of its harness, which contextd does not know.
	LabelOwnPrompt = "harness.own_prompt"
)

// The values of LabelStanding for the agent's plan and scratchpad: the newest event with each is the current one.
// Injected messages, reminders and custom events may have them.
const (
	StandingPlan       = "plan"
	StandingScratchpad = "scratchpad"
)

// Injected reports whether the runtime inserted the event's message, so that no human wrote it, whatever its role.
func (e Event) Injected() bool { return e.Labels[LabelInjected] == "true" }

// InjectedBlock reports whether LabelInjectedBlocks lists a block of the event's message.
func (e Event) InjectedBlock(index int) bool {
	listed := e.Labels[LabelInjectedBlocks]
	return listed != "" && strings.Contains(","+listed+",", ","+strconv.Itoa(index)+",")
}
