package chat

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
)

// part is a part of a content as programs write it that convert transcripts: what the model
// thought, called and got back are parts like its texts.
type part struct {
	Type       string         `json:"type"`
	ID         string         `json:"id"`
	ToolCallID string         `json:"tool_call_id"`
	Name       string         `json:"name"`
	Arguments  jsontext.Value `json:"arguments"`
	Args       jsontext.Value `json:"args"`
	Text       jsontext.Value `json:"text"`
}

// metadata is what they say of a message besides.
type metadata struct {
	Timestamp jsontext.Value `json:"timestamp"`
	// Role is that of a message whose own names a subagent.
	Role transcript.Word `json:"original_role"`
}

// Such a part has one of these in it. Looking for them spares decoding most contents twice.
var (
	marksOfReplies = [][]byte{[]byte(`"tool_call"`), []byte(`"tool_use"`), []byte(`"reasoning"`)}
	marksOfResults = [][]byte{[]byte(`"tool_output"`)}
)

// parts are those of a list in which there may be one; nil of all other contents.
func parts(content jsontext.Value, marks [][]byte) (raw []jsontext.Value, read []part) {
	if len(content) == 0 || content[0] != '[' || !slices.ContainsFunc(marks, func(mark []byte) bool { return bytes.Contains(content, mark) }) {
		return nil, nil
	}
	if transcript.Decode(content, &raw) != nil {
		return nil, nil
	}
	read = make([]part, len(raw))
	for i := range raw {
		var p transcript.Maybe[part]
		if transcript.Decode(raw[i], &p) == nil {
			read[i] = p.Value
		}
	}
	return raw, read
}

// takeCalls takes the calls out of the content of a reply. Most are in tool_calls as well, which
// gets the others.
func (m *message) takeCalls() {
	raw, read := parts(m.Content, marksOfReplies)
	if raw == nil {
		return
	}
	listed := map[string]bool{}
	for _, call := range m.ToolCalls {
		listed[call.ID] = true
	}
	var rest []jsontext.Value
	for i, p := range read {
		id := cmp.Or(p.ToolCallID, p.ID)
		isCall := p.Type == "tool_call" || p.Type == "tool_use"
		known := listed[id] || id == "" && len(listed) > 0
		thought, isText := transcript.Text(p.Text)
		switch {
		case isCall && known:
		case isCall && len(p.Arguments)+len(p.Args) > 0:
			call := toolCall{ID: id, Name: p.Name, Arguments: p.Arguments}
			if len(p.Arguments) == 0 {
				call.Arguments = p.Args
			}
			m.ToolCalls = append(m.ToolCalls, call)
		case p.Type == "reasoning" && isText && m.ReasoningContent == "" && m.Reasoning == "":
			m.thoughts = append(m.thoughts, thought)
		default:
			rest = append(rest, raw[i])
		}
	}
	m.Content = transcript.List(rest...)
}

// outputs are the contents of a result without the parts around them.
func outputs(content jsontext.Value) jsontext.Value {
	raw, read := parts(content, marksOfResults)
	if raw == nil {
		return content
	}
	var inner []jsontext.Value
	for i, p := range read {
		var list []jsontext.Value
		switch {
		case p.Type != "tool_output":
			inner = append(inner, raw[i])
		case len(p.Text) == 0 || p.Text[0] == 'n':
		case p.Text[0] == '"':
			inner = append(inner, transcript.Object("type", "text", "text", p.Text))
		case transcript.Decode(p.Text, &list) == nil:
			inner = append(inner, list...)
		default:
			inner = append(inner, transcript.Object("type", "text", "text", transcript.Compact(p.Text)))
		}
	}
	return transcript.List(inner...)
}
