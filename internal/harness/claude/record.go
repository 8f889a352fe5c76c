package claude

import (
	"cmp"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
)

// record is one line of a transcript: the fields of every record and, for conversation, an Anthropic message.
type record struct {
	Type              string         `json:"type"`
	Subtype           string         `json:"subtype"`
	UUID              string         `json:"uuid"`
	ParentUUID        string         `json:"parentUuid"`
	SessionID         string         `json:"sessionId"`
	AgentID           string         `json:"agentId"`
	CWD               string         `json:"cwd"`
	GitBranch         string         `json:"gitBranch"`
	UserType          string         `json:"userType"`
	Version           string         `json:"version"`
	Timestamp         string         `json:"timestamp"`
	IsSidechain       bool           `json:"isSidechain"`
	IsMeta            bool           `json:"isMeta"`
	IsCompactSummary  bool           `json:"isCompactSummary"`
	IsAPIErrorMessage bool           `json:"isApiErrorMessage"`
	Message           *message       `json:"message"`
	CompactMetadata   *compact       `json:"compactMetadata"`
	ToolUseResult     jsontext.Value `json:"toolUseResult"`
	Data              jsontext.Value `json:"data"` // of progress
	ParentToolUseID   string         `json:"parentToolUseID"`
	Notes             *notes         `json:"contextd"`

	Origin       origin         `json:"origin"`
	TurnOrigin   word           `json:"turnOrigin"`
	PromptSource word           `json:"promptSource"`
	Interrupted  word           `json:"interruptedMessageId"`
	Attachment   jsontext.Value `json:"attachment"`
	Operation    word           `json:"operation"` // of queue-operation, as what follows
	Reason       word           `json:"reason"`
	Content      jsontext.Value `json:"content"`
	printed
}

// printed has the members whose names differ in records that Claude Code prints, with --output-format or to its SDK. No
// envelope is kept of such a message: an export makes a record of a transcript of it.
type printed struct {
	isPrinted bool
	SessionID word `json:"session_id"`
	// Caller is the call that began the subagent of which the record is.
	Caller      word                   `json:"parent_tool_use_id"`
	IsSynthetic transcript.Maybe[bool] `json:"isSynthetic"`
}

// translate sets the members of transcripts from those of printed records.
func (rec *record) translate() {
	p := &rec.printed
	p.isPrinted = rec.SessionID == "" && p.SessionID != ""
	rec.SessionID = cmp.Or(rec.SessionID, string(p.SessionID))
	rec.IsMeta = rec.IsMeta || p.IsSynthetic.Value
	if p.Caller != "" {
		rec.IsSidechain, rec.AgentID = true, cmp.Or(rec.AgentID, string(p.Caller))
	}
}

// word is a text. Records of other types use the same members for values of other types.
type word = transcript.Word

// origin says who wrote a prompt.
type origin = transcript.Maybe[struct {
	Kind string `json:"kind"`
}]

// notes are in records that contextd wrote for sessions of other harnesses. They have the originals of values that
// had to be changed because the API would refuse them.
type notes struct {
	// Calls are the original ids of tool calls, by the ids written instead.
	Calls map[string]string `json:"calls,omitempty"`
	// Wrapped are the ids, as written, of calls whose arguments are no object and were wrapped in one.
	Wrapped []string `json:"wrapped,omitempty"`
	// Spaced are the original arguments that had whitespace between tokens, by the calls' ids as written.
	Spaced map[string]string `json:"spaced,omitempty"`
	// Interrupted is set on a result that contextd wrote for a call without one. It is not in the log.
	Interrupted bool `json:"interrupted,omitzero"`
}

type message struct {
	Role    string         `json:"role"`
	ID      string         `json:"id"`
	Model   string         `json:"model"`
	Content jsontext.Value `json:"content"`
	Usage   usage          `json:"usage"`
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
	// Only newer versions write the fields below.
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

// agentProgress is the data of a progress line with a message of a subagent.
type agentProgress struct {
	Type    string         `json:"type"`
	AgentID string         `json:"agentId"`
	Message jsontext.Value `json:"message"` // a record with only some of the shared fields
}

func (u usage) labels() map[string]string {
	return transcript.Usage{
		Prompt: u.Input + u.CacheWrite + u.CacheRead, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Output: u.Output,
	}.Labels()
}

// notKept is everything in Claude Code's files that a session does not keep.
var notKept = []transcript.NotKept{
	{Entry: "progress", Reason: "what the terminal showed while hooks, commands and subagents ran; a subagent's messages in it are kept as its session"},
	{Entry: "file-history-snapshot", Reason: "names copies of files next to the transcripts, for undoing edits"},
	{Entry: "stream_event", Reason: "the pieces of a message that comes as a whole after them"},
	{Entry: "*", Field: "toolUseResult", Reason: "repeats the result in another form, for the terminal; the model does not see it"},
}
