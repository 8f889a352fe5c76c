package claude

import (
	"encoding/json"

	"github.com/contextd/contextd/internal/harness/transcript"
)

// record is one line of a transcript: the envelope and, for conversation, an
// Anthropic message.
type record struct {
	Type              string          `json:"type"`
	Subtype           string          `json:"subtype"`
	UUID              string          `json:"uuid"`
	ParentUUID        string          `json:"parentUuid"`
	SessionID         string          `json:"sessionId"`
	AgentID           string          `json:"agentId"`
	CWD               string          `json:"cwd"`
	GitBranch         string          `json:"gitBranch"`
	UserType          string          `json:"userType"`
	Version           string          `json:"version"`
	Timestamp         string          `json:"timestamp"`
	IsSidechain       bool            `json:"isSidechain"`
	IsMeta            bool            `json:"isMeta"`
	IsCompactSummary  bool            `json:"isCompactSummary"`
	IsAPIErrorMessage bool            `json:"isApiErrorMessage"`
	Message           *message        `json:"message"`
	CompactMetadata   *compact        `json:"compactMetadata"`
	ToolUseResult     json.RawMessage `json:"toolUseResult"`
	Data              json.RawMessage `json:"data"` // of progress
	ParentToolUseID   string          `json:"parentToolUseID"`
	Notes             *notes          `json:"contextd"`

	Origin       origin          `json:"origin"`
	TurnOrigin   word            `json:"turnOrigin"`
	PromptSource word            `json:"promptSource"`
	Interrupted  word            `json:"interruptedMessageId"`
	Attachment   json.RawMessage `json:"attachment"`
	Operation    word            `json:"operation"` // of queue-operation, as what follows
	Reason       word            `json:"reason"`
	Content      json.RawMessage `json:"content"`
}

// word is a text, or empty if it is none.
type word string

// UnmarshalJSON never fails: records of other types use the members for other things.
func (w *word) UnmarshalJSON(raw []byte) error {
	text, _ := transcript.Text(raw)
	*w = word(text)
	return nil
}

// origin says who wrote a prompt.
type origin struct{ Kind string }

// UnmarshalJSON never fails.
func (o *origin) UnmarshalJSON(raw []byte) error {
	kind, ok := transcript.MemberOf(raw, "kind")
	if *o = (origin{}); ok {
		o.Kind, _ = transcript.Text(kind)
	}
	return nil
}

// notes are in records that contextd wrote of sessions which were not the
// harness's own: what the API would refuse in them, as it was.
type notes struct {
	// Calls are the ids of tool calls, by the ids that are in their place.
	Calls map[string]string `json:"calls,omitempty"`
	// Wrapped are the ids (those of the record) of calls whose arguments are no
	// object and are in one as text.
	Wrapped []string `json:"wrapped,omitempty"`
	// Spaced are arguments with whitespace between their tokens, by the ids of calls.
	Spaced map[string]string `json:"spaced,omitempty"`
	// Interrupted is set on a result that no one gave, and that is none in the log.
	Interrupted bool `json:"interrupted,omitzero"`
}

type message struct {
	Role    string          `json:"role"`
	ID      string          `json:"id"`
	Model   string          `json:"model"`
	Content json.RawMessage `json:"content"`
	Usage   *usage          `json:"usage"`
}

type usage struct {
	Input      transcript.Count `json:"input_tokens"`
	CacheWrite transcript.Count `json:"cache_creation_input_tokens"`
	CacheRead  transcript.Count `json:"cache_read_input_tokens"`
	Output     transcript.Count `json:"output_tokens"`
}

type compact struct {
	Trigger   string  `json:"trigger"`
	PreTokens *uint64 `json:"preTokens"`
	// What follows is written by newer versions only.
	PostTokens *uint64            `json:"postTokens"`
	Segment    *preservedSegment  `json:"preservedSegment"`
	Messages   *preservedMessages `json:"preservedMessages"`
}

// preservedSegment names the first and the last message of a chain that was kept.
type preservedSegment struct {
	Head   string `json:"headUuid"`
	Anchor string `json:"anchorUuid"`
	Tail   string `json:"tailUuid"`
}

// preservedMessages lists what was kept.
type preservedMessages struct {
	Anchor string   `json:"anchorUuid"`
	UUIDs  []string `json:"uuids"`
}

// agentProgress is the data of a progress line that carries a message of a
// subagent.
type agentProgress struct {
	Type    string          `json:"type"`
	AgentID string          `json:"agentId"`
	Message json.RawMessage `json:"message"` // a record without most of its envelope
}

func (u *usage) labels() map[string]string {
	if u == nil {
		return nil
	}
	return transcript.Usage{
		Prompt: u.Input + u.CacheWrite + u.CacheRead, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Output: u.Output,
	}.Labels()
}
