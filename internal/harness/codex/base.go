package codex

import (
	"encoding/base64"
	"time"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	"github.com/contextd/contextd/internal/harness/transcript/jsonvalue"
	eventlog "github.com/contextd/contextd/internal/log"
)

// timeLayout is how the harness writes times.
const timeLayout = "2006-01-02T15:04:05.000Z"

// envelope is what the records of a session need of its labels. The reader writes
// the difference of each record to what is made here, so that it must not come to
// depend on anything else.
type envelope struct {
	bare                    bool
	sessionID, version, cwd string
}

func envelopeOf(labels map[string]string) *envelope {
	return &envelope{
		bare:      labels[labelBare] == "true",
		sessionID: labels[transcript.LabelSessionID], version: labels[transcript.LabelVersion],
		cwd: labels[transcript.LabelWorkingDirectory],
	}
}

func text(name, value string) jsonvalue.Member {
	return jsonvalue.Member{Name: name, Value: jsonvalue.String(value)}
}

func with(name string, value jsonvalue.Value) jsonvalue.Member {
	return jsonvalue.Member{Name: name, Value: value}
}

// record puts a payload into its envelope.
func (e *envelope) record(at time.Time, kind string, payload jsonvalue.Value) jsonvalue.Value {
	if e.bare {
		return payload
	}
	v := jsonvalue.Object()
	if !at.IsZero() {
		v.Set("timestamp", jsonvalue.String(at.Format(timeLayout)))
	}
	v.Set("type", jsonvalue.String(kind))
	v.Set("payload", payload)
	return v
}

// line makes the record of an event that one item gave; null if it is none.
func (e *envelope) line(event *eventlog.Event) jsonvalue.Value {
	m, ok := event.Body.(*eventlog.Message)
	if !ok {
		return jsonvalue.Value{}
	}
	kind := event.Labels[labelItem]
	if kind == itemMeta {
		return e.meta(event, textOfBlocks(m.Blocks))
	}
	if kind == userMessage {
		return e.told(event, userMessage, textOfBlocks(m.Blocks))
	}
	payload := itemOf(m.Role, m.Blocks, kind)
	if id := event.Labels[labelItemID]; id != "" && payload.Len() > 0 {
		payload.Set("id", jsonvalue.String(id))
	}
	return e.record(event.Time, "response_item", payload)
}

func (e *envelope) meta(event *eventlog.Event, instructions string) jsonvalue.Value {
	v := jsonvalue.Object()
	v.SetString("id", e.sessionID)
	if !event.Time.IsZero() {
		v.Set("timestamp", jsonvalue.String(event.Time.Format(timeLayout)))
	}
	if e.bare {
		v.SetString("instructions", instructions)
		return v
	}
	v.SetString("cwd", e.cwd)
	v.SetString("cli_version", e.version)
	if instructions != "" {
		v.Set("base_instructions", jsonvalue.Object(text("text", instructions)))
	}
	return e.record(event.Time, "session_meta", v)
}

// itemOf makes an item of the blocks: several only if they are a message's.
func itemOf(role eventlog.Role, blocks []eventlog.Block, kind string) jsonvalue.Value {
	switch b := blocks[0].(type) {
	case eventlog.Thinking:
		return reasoningOf(b)
	case eventlog.ToolCall:
		return callOf(b, kind)
	case eventlog.ToolResult:
		return outputOf(b, kind)
	case eventlog.ProviderBlock:
		if role == eventlog.RoleAssistant && b.Provider == content.OpenAI {
			return jsonvalue.Raw(b.JSON)
		}
	}
	name, part := "user", "input_text"
	switch role {
	case eventlog.RoleAssistant:
		name, part = "assistant", "output_text"
	case eventlog.RoleSystem:
		name = "developer"
	}
	return jsonvalue.Object(text("type", "message"), text("role", name), with("content", partsOf(blocks, part)))
}

func reasoningOf(t eventlog.Thinking) jsonvalue.Value {
	summary := jsonvalue.List()
	if t.Text != "" {
		summary.Append(jsonvalue.Object(text("type", "summary_text"), text("text", t.Text)))
	}
	v := jsonvalue.Object(text("type", "reasoning"), with("summary", summary))
	v.SetString("encrypted_content", t.EncryptedContent)
	if t.EncryptedContent != "" && content.IsReasoningID(t.Signature) {
		v.Set("id", jsonvalue.String(t.Signature))
	}
	return v
}

func callOf(c eventlog.ToolCall, kind string) jsonvalue.Value {
	if !eventlog.IsJSONObject(c.Arguments) {
		kind = "" // the others take an object, or what one holds
	}
	switch kind {
	case "custom_tool_call":
		return jsonvalue.Object(text("type", kind), text("status", "completed"), text("call_id", c.CallID),
			text("name", c.Name), text("input", inputOf(c.Arguments)))
	case "local_shell_call":
		return jsonvalue.Object(text("type", kind), text("call_id", c.CallID), text("status", "completed"),
			with("action", jsonvalue.Raw(c.Arguments)))
	case "tool_search_call":
		return jsonvalue.Object(text("type", kind), text("call_id", c.CallID), text("status", "completed"),
			with("arguments", jsonvalue.Raw(c.Arguments)))
	}
	return jsonvalue.Object(text("type", "function_call"), text("name", c.Name), text("arguments", c.Arguments), text("call_id", c.CallID))
}

func outputOf(r eventlog.ToolResult, kind string) jsonvalue.Value {
	v := jsonvalue.Object()
	if kind == "tool_search_output" {
		v.Set("type", jsonvalue.String(kind))
		v.Set("call_id", jsonvalue.String(r.CallID))
		if t := textOfBlocks(r.Content); transcript.Valid([]byte(t)) {
			v.Set("tools", jsonvalue.Raw(t))
		}
		return v
	}
	if kind == "" {
		kind = "function_call_output"
	}
	v.Set("type", jsonvalue.String(kind))
	v.Set("call_id", jsonvalue.String(r.CallID))
	if plain(r.Content) {
		v.Set("output", jsonvalue.String(textOfBlocks(r.Content)))
	} else {
		v.Set("output", partsOf(r.Content, "input_text"))
	}
	return v
}

// plain reports whether the content of a result is one text or nothing.
func plain(blocks []eventlog.Block) bool {
	if len(blocks) == 0 {
		return true
	}
	_, ok := blocks[0].(eventlog.Text)
	return ok && len(blocks) == 1
}

func partsOf(blocks []eventlog.Block, textType string) jsonvalue.Value {
	parts := jsonvalue.List()
	for _, b := range blocks {
		switch b := b.(type) {
		case eventlog.Text:
			parts.Append(jsonvalue.Object(text("type", textType), text("text", b.Text)))
		case eventlog.Media:
			url := b.URI
			if url == "" {
				url = "data:" + b.MIMEType + ";base64," + base64.StdEncoding.EncodeToString([]byte(b.Data))
			}
			parts.Append(jsonvalue.Object(text("type", "input_image"), text("image_url", url)))
		case eventlog.ProviderBlock:
			if b.Provider == content.OpenAI {
				parts.Append(jsonvalue.Raw(b.JSON))
			}
		}
	}
	return parts
}

func textOfBlocks(blocks []eventlog.Block) string {
	for _, b := range blocks {
		if t, ok := b.(eventlog.Text); ok {
			return t.Text
		}
	}
	return ""
}
