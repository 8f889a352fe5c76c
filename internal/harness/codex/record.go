package codex

import "encoding/json"

// record is one line of a rollout. Rollouts of early versions hold the items
// themselves, without an envelope.
type record struct {
	Timestamp string          `json:"timestamp"`
	Type      string          `json:"type"`
	Payload   json.RawMessage `json:"payload"`
	Notes     *notes          `json:"contextd"`
}

// notes are in records that contextd wrote of sessions which were not the
// harness's own: what it has no place for.
type notes struct {
	// IsError says whether a result is of a failure, where its text says otherwise.
	IsError    *bool            `json:"is_error,omitzero"`
	Compaction *compactionNotes `json:"compaction,omitzero"`
}

// compactedType is the type of the record of a compaction.
const compactedType = "compacted"

// contextCompacted is the type of the event that shows a compaction in the terminal. With
// notes it is a boundary of another maker without a summary.
const contextCompacted = "context_compacted"

// boundary reports whether the record is one of a compaction.
func (r *record) boundary() bool {
	return r.Type == compactedType || r.Type == "event_msg" && r.Notes != nil && r.Notes.Compaction != nil
}

// item is a response item, what goes to the model and comes from it.
type item struct {
	Type             string          `json:"type"`
	ID               string          `json:"id"`
	Role             string          `json:"role"`
	Content          json.RawMessage `json:"content"`
	Summary          []summaryPart   `json:"summary"`
	EncryptedContent string          `json:"encrypted_content"`
	Name             string          `json:"name"`
	Namespace        string          `json:"namespace"`
	Arguments        json.RawMessage `json:"arguments"` // a string of JSON; of tool_search_call JSON
	Input            string          `json:"input"`
	Action           json.RawMessage `json:"action"`
	CallID           string          `json:"call_id"`
	Output           json.RawMessage `json:"output"`
	Tools            json.RawMessage `json:"tools"`
	Kinds            contentKinds    `json:"internal_chat_message_metadata_passthrough"`
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
	Message            string            `json:"message"`
	ReplacementHistory []json.RawMessage `json:"replacement_history"`
}

type eventMessage struct {
	Type    string          `json:"type"`
	Info    json.RawMessage `json:"info"`
	Message json.RawMessage `json:"message"` // of user_message a text
	Kind    json.RawMessage `json:"kind"`    // of user_message in early versions
}
