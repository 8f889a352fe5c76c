package claude

import (
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	"github.com/contextd/contextd/internal/harness/transcript/jsonvalue"
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

// timeLayout is how the harness writes times.
const timeLayout = "2006-01-02T15:04:05.000Z"

// envelope is what every record of a session says alike. The reader takes it from
// the first record and writes the difference of each to it, so that it must not
// come to depend on anything but the session's labels.
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

// record begins a record.
func (e *envelope) record(kind string) jsonvalue.Value {
	v := jsonvalue.Object(
		jsonvalue.Member{Name: "parentUuid"},
		jsonvalue.Member{Name: "isSidechain", Value: jsonvalue.Raw(strconv.FormatBool(e.sidechain))},
	)
	v.SetString("userType", e.userType)
	v.SetString("cwd", e.cwd)
	v.SetString("sessionId", e.sessionID)
	v.SetString("version", e.version)
	v.SetString("gitBranch", e.gitBranch)
	v.SetString("agentId", e.agent)
	v.Set("type", jsonvalue.String(kind))
	return v
}

func setIdentity(v *jsonvalue.Value, uuid string, at time.Time) {
	v.Set("uuid", jsonvalue.String(uuid))
	if !at.IsZero() {
		v.Set("timestamp", jsonvalue.String(at.Format(timeLayout)))
	}
}

// of makes the record that a whole message stands in.
func (e *envelope) of(event *eventlog.Event, m *eventlog.Message) jsonvalue.Value {
	switch event.Labels[labelQueued] {
	case queuedAttachment:
		v := e.record(attachmentType)
		v.Set(attachmentType, jsonvalue.Object(
			jsonvalue.Member{Name: "type", Value: jsonvalue.String(queuedCommand)},
			jsonvalue.Member{Name: "prompt", Value: contentOf("user", m.Blocks)},
			jsonvalue.Member{Name: "commandMode", Value: jsonvalue.String("prompt")},
		))
		setIdentity(&v, event.ID, event.Time)
		return v
	case queuedRemoval:
		v := jsonvalue.Object(
			jsonvalue.Member{Name: "type", Value: jsonvalue.String(operationType)},
			jsonvalue.Member{Name: "operation", Value: jsonvalue.String(removed)},
		)
		if !event.Time.IsZero() {
			v.Set("timestamp", jsonvalue.String(event.Time.Format(timeLayout)))
		}
		return v
	}
	return e.message(event, m, m.Blocks)
}

// message makes the record of a message with the blocks, which may be a part of
// the event's.
func (e *envelope) message(event *eventlog.Event, m *eventlog.Message, blocks []eventlog.Block) jsonvalue.Value {
	kind := "user"
	if m.Role == eventlog.RoleAssistant {
		kind = "assistant"
	}
	v := e.record(kind)
	if kind == "user" && event.Labels[transcript.LabelInjected] == "true" {
		v.Set("isMeta", jsonvalue.Raw("true"))
	}
	var body jsonvalue.Value
	if kind == "assistant" {
		body.SetString("model", m.Model)
		body.SetString("id", m.GroupID)
		body.Set("type", jsonvalue.String("message"))
	}
	body.Set("role", jsonvalue.String(kind))
	body.Set("content", contentOf(kind, blocks))
	if kind == "assistant" {
		body.Set("stop_reason", jsonvalue.Value{})
		body.Set("stop_sequence", jsonvalue.Value{})
		if usage, ok := usageOf(event.Labels); ok {
			body.Set("usage", usage)
		}
	}
	v.Set("message", body)
	setIdentity(&v, event.ID, event.Time)
	return v
}

// carried is what of a record stands in the progress record that carries it.
func (e *envelope) carried(v jsonvalue.Value) *jsonvalue.Value {
	if !e.progress {
		return &v
	}
	var inner jsonvalue.Value
	for _, name := range []string{"type", "message", "uuid", "timestamp"} {
		if value := v.Get(name); value != nil {
			inner.Set(name, *value)
		}
	}
	return &inner
}

// summary makes the record that stands behind a boundary.
func (e *envelope) summary(event *eventlog.Event, text string) jsonvalue.Value {
	v := e.record("user")
	v.Set("parentUuid", jsonvalue.String(event.ID))
	v.Set("message", jsonvalue.Object(
		jsonvalue.Member{Name: "role", Value: jsonvalue.String("user")},
		jsonvalue.Member{Name: "content", Value: jsonvalue.String(text)},
	))
	v.Set("isVisibleInTranscriptOnly", jsonvalue.Raw("true"))
	v.Set("isCompactSummary", jsonvalue.Raw("true"))
	setIdentity(&v, transcript.UUID(e.sessionID, event.ID, "summary"), event.Time)
	return v
}

func usageOf(labels map[string]string) (jsonvalue.Value, bool) {
	prompt, err := strconv.ParseUint(labels[transcript.LabelPromptTokens], 10, 64)
	if err != nil {
		return jsonvalue.Value{}, false
	}
	number := func(label string) uint64 {
		n, _ := strconv.ParseUint(labels[label], 10, 64) // an absent one is 0
		return n
	}
	read, write := number(transcript.LabelCacheReadTokens), number(transcript.LabelCacheWriteTokens)
	input := uint64(0)
	if read+write <= prompt {
		input = prompt - read - write
	}
	member := func(name string, n uint64) jsonvalue.Member {
		return jsonvalue.Member{Name: name, Value: jsonvalue.Raw(strconv.FormatUint(n, 10))}
	}
	return jsonvalue.Object(member("input_tokens", input), member("cache_creation_input_tokens", write),
		member("cache_read_input_tokens", read), member("output_tokens", number(transcript.LabelOutputTokens))), true
}

func contentOf(kind string, blocks []eventlog.Block) jsonvalue.Value {
	if kind == "user" && len(blocks) == 1 {
		if t, ok := blocks[0].(eventlog.Text); ok {
			return jsonvalue.String(t.Text)
		}
	}
	list := jsonvalue.List()
	for _, b := range blocks {
		list.Append(blockOf(b))
	}
	return list
}

func blockOf(b eventlog.Block) jsonvalue.Value {
	object := func(kind string, members ...jsonvalue.Member) jsonvalue.Value {
		return jsonvalue.Object(append([]jsonvalue.Member{{Name: "type", Value: jsonvalue.String(kind)}}, members...)...)
	}
	text := func(name, value string) jsonvalue.Member {
		return jsonvalue.Member{Name: name, Value: jsonvalue.String(value)}
	}
	switch b := b.(type) {
	case eventlog.Text:
		return object("text", text("text", b.Text))
	case eventlog.Thinking:
		if b.RedactedData != "" {
			return object("redacted_thinking", text("data", b.RedactedData))
		}
		return object("thinking", text("thinking", b.Text), text("signature", b.Signature))
	case eventlog.ToolCall:
		return object("tool_use", text("id", b.CallID), text("name", b.Name),
			jsonvalue.Member{Name: "input", Value: jsonvalue.Raw(b.Arguments)})
	case eventlog.ToolResult:
		v := object("tool_result", text("tool_use_id", b.CallID), jsonvalue.Member{Name: "content", Value: resultOf(b.Content)})
		if b.IsError {
			v.Set("is_error", jsonvalue.Raw("true"))
		}
		return v
	case eventlog.Media:
		return mediaOf(b)
	case eventlog.ProviderBlock:
		if b.Provider == content.Anthropic {
			return jsonvalue.Raw(b.JSON)
		}
	}
	return jsonvalue.Value{}
}

func resultOf(blocks []eventlog.Block) jsonvalue.Value {
	if len(blocks) == 0 {
		return jsonvalue.String("")
	}
	return contentOf("user", blocks)
}

func mediaOf(m eventlog.Media) jsonvalue.Value {
	kind := "document"
	if m.MIMEType == "" || strings.HasPrefix(m.MIMEType, "image/") {
		kind = "image"
	}
	var source jsonvalue.Value
	if m.URI != "" {
		source.Set("type", jsonvalue.String("url"))
		source.Set("url", jsonvalue.String(m.URI))
	} else {
		source.Set("type", jsonvalue.String("base64"))
		source.Set("media_type", jsonvalue.String(m.MIMEType))
		source.Set("data", jsonvalue.String(base64.StdEncoding.EncodeToString([]byte(m.Data))))
	}
	return jsonvalue.Object(jsonvalue.Member{Name: "type", Value: jsonvalue.String(kind)}, jsonvalue.Member{Name: "source", Value: source})
}
