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
	// PostTokens is written by newer versions only.
	PostTokens *uint64 `json:"postTokens"`
}

// agentProgress is the data of a progress line that carries a message of a
// subagent.
type agentProgress struct {
	Type    string `json:"type"`
	AgentID string `json:"agentId"`
	Message *struct {
		Type      string   `json:"type"`
		UUID      string   `json:"uuid"`
		Timestamp string   `json:"timestamp"`
		Message   *message `json:"message"`
	} `json:"message"`
}

func (u *usage) labels() map[string]string {
	if u == nil {
		return nil
	}
	return transcript.Usage{
		Prompt: u.Input + u.CacheWrite + u.CacheRead, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Output: u.Output,
	}.Labels()
}
