package log

import (
	"strconv"
	"strings"
	"time"
)

// Seq is the position of an event in its session: dense, from 1. Zero means
// "before the first event".
type Seq uint64

// Event is one entry of the log. An event is immutable once appended: readers
// share it, so nobody may change what its fields refer to.
type Event struct {
	// Seq and Turn are given by the log when the event is admitted.
	Seq Seq
	// Turn is how many model calls had begun when this event was appended,
	// itself included.
	Turn uint32
	// ID is the idempotency key, unique within the session; never empty in a
	// stored event.
	ID string
	// Time is when the event happened, in UTC, as the client or the daemon's
	// edge gave it.
	Time   time.Time
	Labels map[string]string
	Body   Body
	// Tokens are the counts taken when the event was appended. They are derived
	// data: they take no part in the event's identity.
	Tokens TokenCounts
}

// Body is what an event carries: *Message, *Reminder, *Compaction or *Custom.
type Body interface{ body() }

func (*Message) body()    {}
func (*Reminder) body()   {}
func (*Compaction) body() {}
func (*Custom) body()     {}

// Role says who speaks in a message.
type Role uint8

// The roles of a message. RoleUnspecified is never stored in a message; in a
// reminder's hint it means "no preference".
const (
	RoleUnspecified Role = iota
	RoleSystem
	RoleUser
	RoleAssistant
	RoleTool
)

// String returns the role's name as it is in rendered messages.
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

// Message is one message of the conversation, or a part of one: entries that
// are a single API message share a GroupID.
type Message struct {
	Role    Role
	Blocks  []Block
	GroupID string
	// Model is the model that wrote an assistant message, as the runtime named
	// it; empty if unknown.
	Model string
	// Pinned messages are never reduced.
	Pinned bool
}

// Reminder is a note of the runtime that is rendered after the conversation
// while it lives.
type Reminder struct {
	Body string
	// TTLTurns is how many model calls see the reminder; nil is every one until a
	// newer reminder takes its place.
	TTLTurns *uint32
	// DedupeKey, if not empty, lets a newer reminder with the same key replace
	// this one.
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

// Compaction is a boundary at which a harness, or contextd, replaced the front
// of the conversation for the model. The log itself keeps everything.
type Compaction struct {
	Trigger CompactionTrigger
	Summary string
	// PreTokens and PostTokens are the context's size around the boundary as its
	// maker counted it; nil if it did not say.
	PreTokens, PostTokens *uint64
	// KeptEventIDs are the events that stayed verbatim.
	KeptEventIDs []string
	Mode         string
	Strategy     string
	// NativeJSON is the harness's own marker, unchanged.
	NativeJSON string
	// Decision is what a caller decided for the session; nil in a harness's boundary.
	Decision *CompactionDecision
}

// CompactionDecision says what a caller had contexts show less of, from the compaction's event on. It is complete: it
// repeats what earlier compactions of the session decided.
type CompactionDecision struct {
	// Through is the event up to which groups were dropped; 0 if none were.
	Through Seq
	// DigestTokens is the context size, in tokens, of which the parts of the digest may take shares.
	DigestTokens uint64
	// Kept are groups up to Through that stay nonetheless, each by its first event, in ascending order.
	Kept []Seq
	// LateAfter concerns late results, which came after a further model call had begun. Late results after
	// event LateAfter keep the groups of their calls in view, also groups up to Through; 0 if none does.
	LateAfter Seq
	// Masked are the results that are shown as pointers.
	Masked []Place
	// SummaryID names the text in Compaction.Summary, SummaryThrough is the last event
	// that it covers and SummaryBy who wrote it; empty where there is none.
	SummaryID      string
	SummaryThrough Seq
	SummaryBy      string
	// Undoes is the compaction that is taken back, with every later one; 0 takes none
	// back. Nothing else is set beside it.
	Undoes Seq
}

// Custom is an event that is kept forever and never rendered.
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
	// Estimated is set when any of the counts is an estimate rather than exact.
	Estimated bool
}

// Total is the sum over all blocks, without any per-message overhead.
func (t TokenCounts) Total() uint64 {
	var sum uint64
	for _, n := range t.Blocks {
		sum += uint64(n)
	}
	return sum
}

// Labels of an event that reduction reads. All others are the client's own marks.
const (
	// LabelInjected is "true" on a message that no human and no model wrote: the runtime
	// put it in.
	LabelInjected = "harness.injected"
	// LabelInjectedBlocks lists the blocks of a human's message that the runtime put in beside the human's words, by their
	// indexes: "1,2".
	LabelInjectedBlocks = "harness.injected_blocks"
	// LabelStanding names what an injected message is about, such as "AGENTS.md" or
	// "environment": it holds until a newer one of the same name. An injected message
	// without it is a notification.
	LabelStanding = "harness.standing"
)

// Names of standing events whose newest is the agent's live plan and scratchpad. Beside
// injected messages, reminders and custom events may have them.
const (
	StandingPlan       = "plan"
	StandingScratchpad = "scratchpad"
)

// Injected reports whether the runtime put the event's message in, so that it is no
// human's, whatever its role.
func (e Event) Injected() bool { return e.Labels[LabelInjected] == "true" }

// InjectedBlock reports whether LabelInjectedBlocks lists a block of the event's message.
func (e Event) InjectedBlock(index int) bool {
	listed := e.Labels[LabelInjectedBlocks]
	return listed != "" && strings.Contains(","+listed+",", ","+strconv.Itoa(index)+",")
}
