package assemble

import (
	"time"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/render"
)

// Request asks for the rendered context of a session.
type Request struct {
	SessionID string
	// AsOf renders the log as it stood at this event; nil is the head.
	AsOf       *eventlog.Seq
	Budget     budget.Spec
	Policy     Policy
	Injections []render.Injection
	Have       Have
	// Preview records nothing.
	Preview        bool
	IdempotencyKey string
	// ask is what a compaction asks for.
	ask reduce.Ask
}

// Policy is everything a request decides by.
type Policy struct {
	Reduction reduce.Policy
	Summaries SummaryPolicy
	// Projection is the policy that is applied to the reduced view.
	Projection projection.Options
	// Reason is the caller's own, for the record.
	Reason string
}

// Have is what the caller holds of the prefix already.
type Have struct {
	MessageCount int
	PrefixHash   string
}

// Message is a rendered message and its canonical bytes.
type Message struct {
	render.Message
	JSON []byte
}

// Context is the answer: the header's facts and the messages the caller lacks.
type Context struct {
	SessionID   string
	AsOf        eventlog.Seq
	PrefixHash  string
	ContextHash string
	// MessageCount counts the whole context, injections included; Skipped of them
	// the caller has.
	MessageCount int
	Skipped      int
	Messages     []Message
	Projection   projection.Record
	// Pointers are the record's, completed from the log.
	Pointers []PointerFacts
	Budget   BudgetReport
	Cache    CacheReport
	// SummarizingThrough is the last event of the span of which a summary was
	// proposed; 0 if none was.
	SummarizingThrough eventlog.Seq
}

// PointerFacts is a pointer with what the log says of its block.
type PointerFacts struct {
	projection.Pointer
	Name        string // what ResolvePointer takes
	CallID      string
	ToolName    string
	ContentHash string // "sha256:" + hex of the block's text in the log
	Chars       int
}

// BudgetReport says how the budget was used, in tokens as the provider is expected to
// count them: the gauge's times Calibration.
type BudgetReport struct {
	Calibration float64
	State       budget.State
	Target      uint64
	Raw         uint64 // the whole log, unreduced
	Projected   uint64
	Tiers       map[budget.Tier]uint64
	Tokenizer   string
}

// CacheReport compares with the projection recorded before.
type CacheReport struct {
	StableMessages int
	StableTokens   uint64
	// BrokenBy is the reducer that rewrote the first differing message, "log" if a
	// late result did; empty if the old prefix still stands.
	BrokenBy string
}

// Replay is a recorded projection and the same computed anew.
type Replay struct {
	Same               bool
	Recorded, Replayed projection.Record
	// Messages are those that Replayed describes; injections are not recorded.
	Messages   []Message
	Difference string
}

// Clock gives the time for records; nothing that is rendered depends on it.
type Clock func() time.Time
