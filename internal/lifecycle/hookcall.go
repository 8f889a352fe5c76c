package lifecycle

import (
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Hook says when a runtime is called.
type Hook string

// The hooks.
const (
	PreCompact  Hook = "pre_compact"
	PostCompact Hook = "post_compact"
)

// The modes of compactions, which say who asked.
const (
	ModeManual       = "manual"
	ModeHost         = "host"
	ModeAuto         = "auto"
	ModeWorkflow     = "workflow"
	ModeWorker       = "worker"
	ModeResumeDigest = "resume_digest"
)

// fires reports whether runtimes are asked about compactions of this mode. The others are part of something that the
// runtime itself started.
func fires(mode string) bool {
	return mode == ModeManual || mode == ModeHost || mode == ModeAuto
}

// Terms are the properties of a compaction that a hook may change.
type Terms struct {
	// Strategy is mask, window or summarize.
	Strategy string
	// KeepLastTurns is how many of the newest turns stay as they are.
	KeepLastTurns uint32
	// TargetTokens is the most that the context may have afterwards.
	TargetTokens uint64
}

// Instructions say where a summarizer's instructions besides the daemon's come from; zero if there are none.
type Instructions struct {
	// Source is FromRequest or FromPolicy.
	Source string
	// Mode is extend or replace.
	Mode string
}

// The sources of a summarizer's instructions.
const (
	FromRequest = "request"
	FromPolicy  = "policy"
)

// Call describes a compaction to a runtime. All subscribers share what it refers to: nobody may change that.
type Call struct {
	// Hooks sets ID and Hook. The ID is another one for each subscriber.
	ID   string
	Hook Hook

	SessionID string
	Mode      string
	Trigger   eventlog.CompactionTrigger
	Terms     Terms
	// Policy is the projection policy by which the context is measured.
	Policy       string
	Instructions Instructions
	// MessageCount and TokensBefore are the size of the context before.
	MessageCount uint32
	TokensBefore uint64
	// Result is nil before the compaction.
	Result *Result
}

// Result is what a compaction did.
type Result struct {
	// RemainingMessages and TokensAfter are the size of the context after.
	RemainingMessages uint32
	TokensAfter       uint64
	// ArchivedMessages is how many messages were dropped from the context.
	ArchivedMessages uint32
	// Summary is the text that was made; empty if none was.
	Summary   string
	Reminders ReminderReport
}

// ReminderReport says what a compaction did to reminders, by their dedupe keys or event ids. Deduped reminders
// were replaced by a newer one with the same key; compacted ones were dropped with their turns.
type ReminderReport struct {
	Expired, Deduped, Compacted, Preserved []string
	// Decremented counts the reminders that stay and have fewer turns to live than at the start.
	Decremented uint32
}

// Decision is a runtime's answer to a compaction.
type Decision string

// The decisions.
const (
	Allow  Decision = "allow"
	Block  Decision = "block"
	Modify Decision = "modify"
)

// Reply answers a PreCompact call.
type Reply struct {
	CallID string
	// Decision is Allow if empty.
	Decision Decision
	Reason   string
	// The values that Modify changes; nil or empty does not change one. Replies with another decision must not set
	// them.
	KeepLastTurns *uint32
	TargetTokens  *uint64
	Strategy      string
}

// apply returns the terms with the reply's changes.
func (r Reply) apply(t Terms) Terms {
	if r.KeepLastTurns != nil {
		t.KeepLastTurns = *r.KeepLastTurns
	}
	if r.TargetTokens != nil {
		t.TargetTokens = *r.TargetTokens
	}
	if r.Strategy != "" {
		t.Strategy = r.Strategy
	}
	return t
}

// check refuses a reply that contradicts itself.
func (r Reply) check() error {
	bad := func(field, reason string) error { return &eventlog.InvalidError{Field: field, Reason: reason} }
	const alone = "may be set only where decision is modify"
	switch {
	case r.Decision != "" && r.Decision != Allow && r.Decision != Block && r.Decision != Modify:
		return bad("decision", "must be allow, block or modify")
	case r.TargetTokens != nil && *r.TargetTokens == 0:
		return bad("target_tokens", "must be greater than 0")
	case r.Decision == Modify:
		return nil
	case r.KeepLastTurns != nil:
		return bad("keep_last_turns", alone)
	case r.TargetTokens != nil:
		return bad("target_tokens", alone)
	case r.Strategy != "":
		return bad("strategy", alone)
	default:
		return nil
	}
}

// Verdict is the answer of all runtimes together to a compaction.
type Verdict struct {
	// Decision is Block if the compaction must not happen, else Modify if a runtime changed its terms, else Allow.
	Decision Decision
	// Reason is the reason of the block, or the reasons of the changes, as a text; empty if none was given.
	Reason string
	// Terms are the terms of the compaction, changed or not.
	Terms Terms
}

// Subscription says for what a runtime wants to be called.
type Subscription struct {
	// Sessions are the runtime's sessions; empty is all.
	Sessions []string
	// PreCompact and PostCompact say which hooks it serves.
	PreCompact, PostCompact bool
	// Deadline is how long to wait for an answer; 0 is the default of Hooks.
	Deadline time.Duration
}
