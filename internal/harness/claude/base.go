package claude

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// The labels of a session that only this harness has.
const (
	labelUserType  = "claude.user_type"
	labelAgent     = "claude.agent_id"
	labelSidechain = "claude.sidechain"
	// labelProgress is "true" on subagents' sessions that came in progress records.
	labelProgress = "claude.progress"
)

// envelope has the fields that all records of a session share. Envelopes that are stored are differences from
// records made of it: so it must depend on nothing but the session's labels.
type envelope struct {
	progress                                            bool
	sidechain                                           bool
	userType, cwd, sessionID, version, gitBranch, agent string
}

func envelopeOf(labels map[string]string) envelope {
	return envelope{
		progress:  labels[labelProgress] == "true",
		sidechain: labels[labelSidechain] == "true",
		userType:  labels[labelUserType], cwd: labels[transcript.LabelWorkingDirectory],
		sessionID: labels[transcript.LabelSessionID], version: labels[transcript.LabelVersion],
		gitBranch: labels[transcript.LabelGitBranch], agent: labels[labelAgent],
	}
}

// record makes a record with the given parent, these fields and more.
func (e *envelope) record(kind, parent string, more ...any) jsontext.Value {
	follows := transcript.Null
	if parent != "" {
		follows = transcript.JSON(parent)
	}
	return transcript.With(transcript.Object("parentUuid", follows, "isSidechain", e.sidechain,
		"userType", transcript.Optional(e.userType), "cwd", transcript.Optional(e.cwd),
		"sessionId", transcript.Optional(e.sessionID), "version", transcript.Optional(e.version),
		"gitBranch", transcript.Optional(e.gitBranch), "agentId", transcript.Optional(e.agent), "type", kind), more...)
}

// of makes the record of a message that is one record.
func (e *envelope) of(event *eventlog.Event, m *eventlog.Message) jsontext.Value {
	switch event.Labels[labelQueued] {
	case queuedAttachment:
		return e.record(attachmentType, "", attachmentType, transcript.Object("type", queuedCommand,
			"prompt", contentOf("user", m.Blocks), "commandMode", "prompt"), "uuid", event.ID, "timestamp", transcript.Stamp(event.Time))
	case queuedRemoval:
		return transcript.Object("type", operationType, "operation", removed, "timestamp", transcript.Stamp(event.Time))
	}
	return e.message(event, m, m.Blocks, event.Labels[labelParent])
}

// message makes the record of a message with these blocks, which may be only some of the event's.
func (e *envelope) message(event *eventlog.Event, m *eventlog.Message, blocks []eventlog.Block, parent string) jsontext.Value {
	kind, meta := "user", any(nil)
	var body jsontext.Value
	if m.Role == eventlog.RoleAssistant {
		kind = "assistant"
		body = transcript.Object("model", transcript.Optional(m.Model), "id", transcript.Optional(m.GroupID),
			"type", "message", "role", kind, "content", contentOf(kind, blocks),
			"stop_reason", transcript.Null, "stop_sequence", transcript.Null, "usage", usageOf(event.Labels))
	} else {
		body = transcript.Object("role", kind, "content", contentOf(kind, blocks))
		if event.Labels[transcript.LabelInjected] == "true" {
			meta = true
		}
	}
	return e.record(kind, parent, "isMeta", meta, "message", body, "uuid", event.ID, "timestamp", transcript.Stamp(event.Time))
}

// carried reduces a record to the fields that it has inside a progress record, if the session came in such
// records.
func (e *envelope) carried(record jsontext.Value) jsontext.Value {
	if !e.progress {
		return record
	}
	return transcript.Rewrite(record, func(name string, value []byte) []byte {
		switch name {
		case "type", "message", "uuid", "timestamp":
			return value
		}
		return nil
	})
}

// summary makes the record with the summary, which follows the record of the boundary.
func (e *envelope) summary(event *eventlog.Event, text string) jsontext.Value {
	return e.record("user", event.ID, "message", transcript.Object("role", "user", "content", text),
		"isVisibleInTranscriptOnly", true, "isCompactSummary", true,
		"uuid", transcript.UUID(e.sessionID, event.ID, "summary"), "timestamp", transcript.Stamp(event.Time))
}

// usageOf returns the usage of a request, or nil if nothing was counted.
func usageOf(labels map[string]string) jsontext.Value {
	if _, err := strconv.ParseUint(labels[transcript.LabelPromptTokens], 10, 64); err != nil {
		return nil
	}
	u := transcript.UsageOf(labels)
	return transcript.Object("input_tokens", u.Fresh(), "cache_creation_input_tokens", u.CacheWrite,
		"cache_read_input_tokens", u.CacheRead, "output_tokens", u.Output)
}

func contentOf(kind string, blocks []eventlog.Block) jsontext.Value {
	if kind == "user" && len(blocks) == 1 {
		if t, ok := blocks[0].(eventlog.Text); ok {
			return transcript.JSON(t.Text)
		}
	}
	list := make([]jsontext.Value, len(blocks))
	for i, b := range blocks {
		list[i] = blockOf(b)
	}
	return transcript.List(list...)
}

func blockOf(b eventlog.Block) jsontext.Value {
	switch b := b.(type) {
	case eventlog.Text:
		return transcript.Object("type", "text", "text", b.Text)
	case eventlog.Thinking:
		if b.RedactedData != "" {
			return transcript.Object("type", "redacted_thinking", "data", b.RedactedData)
		}
		return transcript.Object("type", "thinking", "thinking", b.Text, "signature", b.Signature)
	case eventlog.ToolCall:
		return transcript.Object("type", "tool_use", "id", b.CallID, "name", b.Name, "input", jsontext.Value(b.Arguments))
	case eventlog.ToolResult:
		result := transcript.JSON("")
		if len(b.Content) > 0 {
			result = contentOf("user", b.Content)
		}
		v := transcript.Object("type", "tool_result", "tool_use_id", b.CallID, "content", result)
		if b.IsError {
			v = transcript.With(v, "is_error", true)
		}
		return v
	case eventlog.Media:
		return mediaOf(b)
	case eventlog.ProviderBlock:
		if b.Provider == content.Anthropic {
			return jsontext.Value(b.JSON)
		}
	}
	return transcript.Null
}

func mediaOf(m eventlog.Media) jsontext.Value {
	kind := "document"
	if m.MIMEType == "" || strings.HasPrefix(m.MIMEType, "image/") {
		kind = "image"
	}
	source := transcript.Object("type", "url", "url", m.URI)
	if m.URI == "" {
		source = transcript.Object("type", "base64", "media_type", m.MIMEType, "data", base64.StdEncoding.EncodeToString([]byte(m.Data)))
	}
	return transcript.Object("type", kind, "source", source)
}
