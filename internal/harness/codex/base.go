package codex

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/provider"
)

// envelope has the fields that records take from a session's labels. Envelopes that are stored are
// differences from records made of it: so it must depend on nothing but these labels.
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

// record wraps a payload in a record; early versions have no wrapper.
func (e *envelope) record(at time.Time, kind string, payload jsontext.Value) jsontext.Value {
	if e.bare {
		return payload
	}
	return transcript.Object("timestamp", transcript.Stamp(at), "type", kind, "payload", payload)
}

// line makes the record of an event that is one item.
func (e *envelope) line(event *eventlog.Event, m *eventlog.Message) jsontext.Value {
	kind := event.Labels[labelItem]
	if kind == itemMeta {
		return e.meta(event, textOfBlocks(m.Blocks))
	}
	if kind == userMessage {
		return e.shownInTerminal(event, userMessage, textOfBlocks(m.Blocks))
	}
	if kind == interAgent {
		return e.record(event.Time, interAgent, transcript.Object("content", textOfBlocks(m.Blocks)))
	}
	payload := itemOf(m.Role, m.Blocks, kind)
	if _, named := transcript.MemberOf(payload, "id"); !named {
		payload = transcript.With(payload, "id", transcript.Optional(event.Labels[labelItemID]))
	}
	return e.record(event.Time, "response_item", payload)
}

// meta makes the head of a session; more are further members of its payload, unless it is one of an early
// version.
func (e *envelope) meta(event *eventlog.Event, instructions string, more ...any) jsontext.Value {
	v := transcript.Object("id", transcript.Optional(e.sessionID), "timestamp", transcript.Stamp(event.Time))
	if e.bare {
		return transcript.With(v, "instructions", transcript.Optional(instructions))
	}
	v = transcript.With(v, "cwd", transcript.Optional(e.cwd), "cli_version", transcript.Optional(e.version))
	if instructions != "" {
		v = transcript.With(v, "base_instructions", transcript.Object("text", instructions))
	}
	return e.record(event.Time, "session_meta", transcript.With(v, more...))
}

// itemOf makes an item of the blocks. Only those of a message may be several, which have one phase.
func itemOf(role eventlog.Role, blocks []eventlog.Block, kind string) jsontext.Value {
	if parts, phase := phaseOf(blocks); phase != nil && len(parts) > 0 {
		return transcript.With(itemOf(role, parts, kind), "phase", phase)
	}
	switch b := blocks[0].(type) {
	case eventlog.Thinking:
		return reasoningOf(b)
	case eventlog.ToolCall:
		return callOf(b, kind)
	case eventlog.ToolResult:
		return outputOf(b, kind)
	case eventlog.ProviderBlock:
		if role == eventlog.RoleAssistant && b.Provider == content.OpenAI {
			return jsontext.Value(b.JSON)
		}
	}
	if kind == agentMessage {
		return transcript.Object("type", kind, "content", partsOf(blocks, "input_text"))
	}
	name, part := "user", "input_text"
	switch role {
	case eventlog.RoleAssistant:
		name, part = "assistant", "output_text"
	case eventlog.RoleSystem:
		name = "developer"
	}
	return transcript.Object("type", "message", "role", name, "content", partsOf(blocks, part))
}

// phaseOf returns the blocks without their phase, and the phase; nil if they have none.
func phaseOf(blocks []eventlog.Block) (parts []eventlog.Block, phase jsontext.Value) {
	for _, b := range blocks {
		if p, ok := b.(eventlog.ProviderBlock); ok && p.Provider == content.OpenAI {
			if members, ok := provider.Members(p); ok && members["phase"] != nil {
				phase = jsontext.Value(members["phase"])
				continue
			}
		}
		parts = append(parts, b)
	}
	return parts, phase
}

func reasoningOf(t eventlog.Thinking) jsontext.Value {
	var summary []jsontext.Value
	if t.Text != "" {
		summary = append(summary, transcript.Object("type", "summary_text", "text", t.Text))
	}
	v := transcript.Object("type", "reasoning", "summary", summary, "encrypted_content", transcript.Optional(t.EncryptedContent))
	if t.EncryptedContent != "" && content.IsReasoningID(t.Signature) {
		v = transcript.With(v, "id", t.Signature)
	}
	return v
}

func callOf(c eventlog.ToolCall, kind string) jsontext.Value {
	if !eventlog.IsJSONObject(c.Arguments) {
		kind = "" // the other kinds take an object, or a member of one
	}
	switch kind {
	case "custom_tool_call":
		return transcript.Object("type", kind, "status", "completed", "call_id", c.CallID, "name", c.Name, "input", inputOf(c.Arguments))
	case "local_shell_call":
		return transcript.Object("type", kind, "call_id", c.CallID, "status", "completed", "action", jsontext.Value(c.Arguments))
	case "tool_search_call":
		return transcript.Object("type", kind, "call_id", c.CallID, "status", "completed", "arguments", jsontext.Value(c.Arguments))
	}
	return transcript.Object("type", "function_call", "name", c.Name, "arguments", c.Arguments, "call_id", c.CallID)
}

func outputOf(r eventlog.ToolResult, kind string) jsontext.Value {
	text := textOfBlocks(r.Content)
	switch {
	case kind == "tool_search_output" && transcript.Valid([]byte(text)):
		return transcript.Object("type", kind, "call_id", r.CallID, "tools", jsontext.Value(text))
	case kind == "tool_search_output":
		return transcript.Object("type", kind, "call_id", r.CallID)
	case kind == "":
		kind = "function_call_output"
	}
	output := partsOf(r.Content, "input_text")
	if plain(r.Content) {
		output = transcript.JSON(text)
	}
	return transcript.Object("type", kind, "call_id", r.CallID, "output", output)
}

// plain reports whether the content of a result is one text or nothing.
func plain(blocks []eventlog.Block) bool {
	if len(blocks) == 0 {
		return true
	}
	_, ok := blocks[0].(eventlog.Text)
	return ok && len(blocks) == 1
}

func partsOf(blocks []eventlog.Block, textType string) jsontext.Value {
	var parts []jsontext.Value
	for _, b := range blocks {
		switch b := b.(type) {
		case eventlog.Text:
			parts = append(parts, transcript.Object("type", textType, "text", b.Text))
		case eventlog.Media:
			parts = append(parts, transcript.Object("type", "input_image", "image_url", content.URL(b)))
		case eventlog.ProviderBlock:
			if b.Provider == content.OpenAI {
				parts = append(parts, jsontext.Value(b.JSON))
			}
		}
	}
	return transcript.List(parts...)
}

// textOfBlocks returns the first text among the blocks.
func textOfBlocks(blocks []eventlog.Block) string {
	for _, text := range transcript.Texts(blocks) {
		return text
	}
	return ""
}
