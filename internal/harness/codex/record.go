package codex

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
)

// record is one line of a rollout. In rollouts of early versions a line is the payload itself.
type record struct {
	Timestamp transcript.Word `json:"timestamp"`
	Type      string          `json:"type"`
	Payload   jsontext.Value  `json:"payload"`
	Notes     *notes          `json:"contextd"`
}

// notes are in records that contextd wrote for sessions of other harnesses. They have what the harness has no place
// for.
type notes struct {
	// IsError says whether a result is an error, if its text suggests otherwise.
	IsError    *bool            `json:"is_error,omitzero"`
	Compaction *compactionNotes `json:"compaction,omitzero"`
}

const (
	usageRecord = "token_usage_record"
	interAgent  = "inter_agent_communication"
)

// compactedType is the type of the record of a compaction.
const compactedType = "compacted"

// contextCompacted is the type of the event that shows a compaction in the terminal. With notes it is a
// compaction without a summary that the harness did not make.
const contextCompacted = "context_compacted"

// boundary reports whether the record is a compaction.
func (r *record) boundary() bool {
	return r.Type == compactedType || r.Type == "event_msg" && r.Notes != nil && r.Notes.Compaction != nil
}

// item is a response item: the unit of what goes to the model and comes from it.
type item struct {
	Type             string                         `json:"type"`
	ID               string                         `json:"id"`
	Role             string                         `json:"role"`
	Content          jsontext.Value                 `json:"content"`
	Summary          []summaryPart                  `json:"summary"`
	EncryptedContent string                         `json:"encrypted_content"`
	Name             string                         `json:"name"`
	Namespace        string                         `json:"namespace"`
	Phase            string                         `json:"phase"`
	Arguments        jsontext.Value                 `json:"arguments"` // a string with JSON; for tool_search_call JSON itself
	Input            string                         `json:"input"`
	Action           jsontext.Value                 `json:"action"`
	CallID           string                         `json:"call_id"`
	Output           jsontext.Value                 `json:"output"`
	Tools            jsontext.Value                 `json:"tools"`
	Kinds            transcript.Maybe[contentKinds] `json:"internal_chat_message_metadata_passthrough"`
}

type summaryPart struct {
	Text string `json:"text"`
}

type sessionMeta struct {
	ID         string `json:"id"`
	CWD        string `json:"cwd"`
	CLIVersion string `json:"cli_version"`
	Git        struct {
		Branch string `json:"branch"`
	} `json:"git"`
	Instructions     string `json:"instructions"` // of early versions
	BaseInstructions *struct {
		Text string `json:"text"`
	} `json:"base_instructions"`
}

type turnContext struct {
	Model string `json:"model"`
}

type compacted struct {
	Message            string           `json:"message"`
	ReplacementHistory []jsontext.Value `json:"replacement_history"`
}

type eventMessage struct {
	Type string         `json:"type"`
	Info jsontext.Value `json:"info"`
	// Message and Kind are fields of user_message; only early versions write Kind.
	Message transcript.Word `json:"message"`
	Kind    transcript.Word `json:"kind"`
	// Turns is a field of thread_rolled_back.
	Turns int `json:"num_turns"`
}

const (
	repeatsItem = "shows in the terminal what a response item says"
	rebuilt     = "repeats a message for the terminal; rebuilt from it"
)

// notKept is everything in Codex's rollouts that a session does not keep. The kinds
// are the type of the record and of its payload.
var notKept = []transcript.NotKept{
	{Entry: "event_msg/user_message", Reason: rebuilt},
	{Entry: "event_msg/agent_message", Reason: rebuilt},
	{Entry: "event_msg/agent_reasoning*", Reason: repeatsItem},
	{Entry: "event_msg/exec_command_*", Reason: repeatsItem},
	{Entry: "event_msg/patch_apply_*", Reason: repeatsItem},
	{Entry: "event_msg/mcp_tool_call_*", Reason: repeatsItem},
	{Entry: "event_msg/web_search_*", Reason: repeatsItem},
	{Entry: "event_msg/task_complete", Field: "payload.last_agent_message", Reason: repeatsItem},
}
