package chat

import (
	"bytes"
	"cmp"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
)

// grokRoles maps the types of the lines that Grok CLI writes to roles.
var grokRoles = map[string]string{"system": "system", "user": "user", "assistant": "assistant", "tool_result": "tool"}

// isMessage reports whether a record is a message, by its shape.
func isMessage(record map[string]string) bool {
	_, said := record["content"]
	_, role := record["role"]
	kind := record["type"]
	return role || execLine(kind) || record["parts[].part_kind"] != "" || itemTypes[kind] || langChainRoles[kind] != "" || said && grokRoles[kind] != "" || wraps(record, "")
}

// wraps reports whether what is at a path is no message, but holds one as its member "message".
func wraps(record map[string]string, at string) bool {
	_, outside := record[at+"role"]
	_, role := record[at+"message.role"]
	_, content := record[at+"message.content"]
	return role && content && !outside
}

// wrapped reports whether a list has messages with members around them.
func wrapped(messages []element) bool {
	var m message
	if len(messages) == 0 || transcript.Decode(messages[0].raw, &m) != nil || m.Role != "" {
		return false
	}
	m.unwrapped(messages[0].raw)
	return m.Role != ""
}

// unwrapped is the message inside an element that has members of its own around it, as Droid and Continue
// write them. The time may be outside.
func (m *message) unwrapped(raw jsontext.Value) {
	if m.Role == "" && len(m.Content) > 0 && grokRoles[m.Type] != "" {
		m.Role = grokRoles[m.Type]
	}
	if m.Role != "" || len(m.Content) > 0 {
		return
	}
	var outer struct {
		Message   transcript.Maybe[message] `json:"message"`
		Reasoning transcript.Maybe[struct {
			Text transcript.Word `json:"text"`
		}] `json:"reasoning"`
	}
	if transcript.Decode(raw, &outer) != nil || outer.Message.Value.Role == "" {
		return
	}
	timestamp, beside := either(m.Timestamp, m.Millis), m.around
	*m = outer.Message.Value
	m.around, m.apart = beside, string(outer.Reasoning.Value.Text)
	if len(m.Timestamp) == 0 {
		m.Timestamp = timestamp
	}
	if len(m.ToolCalls) == 0 {
		m.ToolCalls = m.Continue.Value
	}
	m.ToolCallID = cmp.Or(m.ToolCallID, string(m.ContinueID))
}

// begins reports whether an element is what Droid, Goose and Cursor write of a session before its messages.
func (m *message) begins() bool {
	return m.Role == "" && len(m.Content) == 0 && (m.Type == "session_start" || m.Type == "" && m.WorkingDir != "" || m.Type == "system" && m.Subtype == "init")
}

// ends reports whether an element is what Cursor and Goose print of a session after its messages.
func (m *message) ends() bool {
	return m.Role == "" && len(m.Content) == 0 && (m.Type == "result" && m.Subtype != "" || m.Type == "complete")
}

// foreign are blocks of Goose's and Amp's that are Anthropic's with other names.
type foreign struct {
	Type string          `json:"type"`
	ID   transcript.Word `json:"id"`

	// Of Goose.
	ToolCall   transcript.Maybe[outcome] `json:"toolCall"`
	ToolResult transcript.Maybe[outcome] `json:"toolResult"`

	// Of Amp.
	ToolUseID transcript.Word           `json:"toolUseID"`
	Run       transcript.Maybe[outcome] `json:"run"`
}

// outcome is what became of a call.
type outcome struct {
	Status transcript.Word `json:"status"`
	Value  jsontext.Value  `json:"value"`  // Goose
	Result jsontext.Value  `json:"result"` // Amp
	Error  jsontext.Value  `json:"error"`
}

var marksOfForeign = [][]byte{[]byte(`"toolRequest"`), []byte(`"toolResponse"`), []byte(`"toolUseID"`)}

// translate rewrites those blocks as Anthropic's.
func (m *message) translate() {
	var blocks []jsontext.Value
	if !containsOne(m.Content, marksOfForeign) || transcript.Decode(m.Content, &blocks) != nil {
		return
	}
	for i, raw := range blocks {
		var b transcript.Maybe[foreign]
		if transcript.Decode(raw, &b) != nil {
			continue
		}
		blocks[i] = b.Value.anthropic(raw)
	}
	m.Content = transcript.List(blocks...)
}

func (b *foreign) anthropic(raw jsontext.Value) jsontext.Value {
	call, answer := b.ToolCall.Value, b.ToolResult.Value
	switch {
	case b.Type == "toolRequest" && len(call.Value) > 0:
		var made function
		if transcript.Decode(call.Value, &made) != nil {
			return raw
		}
		return transcript.Object("type", "tool_use", "id", string(b.ID), "name", made.Name, "input", orEmpty(made.Arguments))
	case b.Type == "toolResponse":
		var inner struct {
			Content jsontext.Value `json:"content"`
			IsError bool           `json:"isError"`
		}
		given := answer.Value
		if transcript.Decode(given, &inner) == nil && len(inner.Content) > 0 {
			given = inner.Content
		}
		return result(string(b.ID), given, answer.Error, inner.IsError || answer.Status == "error")
	case b.Type == "tool_result" && b.ToolUseID != "":
		run := b.Run.Value
		var printed struct {
			Output   jsontext.Value `json:"output"`
			ExitCode int            `json:"exitCode"`
		}
		given := run.Result
		if transcript.Decode(given, &printed) == nil {
			if _, isText := transcript.Text(printed.Output); isText {
				given = printed.Output
			}
		}
		return result(string(b.ToolUseID), given, run.Error, run.Status == "error" || printed.ExitCode > 0)
	}
	return raw
}

// result is a result in Anthropic's form, of what a tool gave or else of what went wrong.
func result(id string, given, wrong jsontext.Value, failed bool) jsontext.Value {
	given = either(given, wrong)
	var list []jsontext.Value
	if _, isText := transcript.Text(given); !isText && len(given) > 0 && (transcript.Decode(given, &list) != nil || !containsOne(given, [][]byte{[]byte(`"type"`)})) {
		given = jsontext.Value(transcript.Quote(transcript.Compact(given)))
	}
	return transcript.Object("type", "tool_result", "tool_use_id", id, "content", orNull(given), "is_error", failed)
}

// either returns the first of two values that is there.
func either(a, b jsontext.Value) jsontext.Value {
	if len(a) > 0 {
		return a
	}
	return b
}

func orEmpty(raw jsontext.Value) jsontext.Value { return either(raw, jsontext.Value("{}")) }

func orNull(raw jsontext.Value) jsontext.Value { return either(raw, jsontext.Value("null")) }

func containsOne(content jsontext.Value, marks [][]byte) bool {
	if len(content) == 0 || content[0] != '[' {
		return false
	}
	for _, mark := range marks {
		if bytes.Contains(content, mark) {
			return true
		}
	}
	return false
}
