package claude

import (
	"encoding/json"
	"strconv"
	"time"

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
	Input      uint64 `json:"input_tokens"`
	CacheWrite uint64 `json:"cache_creation_input_tokens"`
	CacheRead  uint64 `json:"cache_read_input_tokens"`
	Output     uint64 `json:"output_tokens"`
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
	if u == nil || *u == (usage{}) {
		return nil
	}
	return map[string]string{
		transcript.LabelPromptTokens:     strconv.FormatUint(u.Input+u.CacheWrite+u.CacheRead, 10),
		transcript.LabelCacheReadTokens:  strconv.FormatUint(u.CacheRead, 10),
		transcript.LabelCacheWriteTokens: strconv.FormatUint(u.CacheWrite, 10),
		transcript.LabelOutputTokens:     strconv.FormatUint(u.Output, 10),
	}
}

// parseTime returns the zero time for a time that is absent or not RFC 3339.
func parseTime(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}
