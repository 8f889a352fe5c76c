package chat

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// part is a part of a content in the form of programs that convert transcripts: thinking, calls and results
// are parts, like texts.
type part struct {
	Type       string         `json:"type"`
	ID         string         `json:"id"`
	ToolCallID string         `json:"tool_call_id"`
	Name       string         `json:"name"`
	Arguments  jsontext.Value `json:"arguments"`
	Args       jsontext.Value `json:"args"`
	Text       jsontext.Value `json:"text"`
	Reasoning  jsontext.Value `json:"reasoning"`
	Think      jsontext.Value `json:"think"` // Kimi CLI
	// Of Roo Code.
	Encrypted transcript.Word `json:"encrypted_content"`
	Seal      transcript.Word `json:"thoughtSignature"`

	// Of a content that is one part.
	ToolID   string         `json:"tool_id"`
	ToolName string         `json:"tool_name"`
	Input    jsontext.Value `json:"input"`
	Output   jsontext.Value `json:"output"`
	IsError  bool           `json:"is_error"`

	// Of the AI SDK.
	CallID   string         `json:"toolCallId"`
	CallName string         `json:"toolName"`
	Result   jsontext.Value `json:"result"`
	Failed   bool           `json:"isError"`
}

// metadata is what these programs add to a message.
type metadata struct {
	Timestamp jsontext.Value `json:"timestamp"`
	// Role is the message's own role, if the role member names a subagent.
	Role transcript.Word `json:"original_role"`
}

// A content with such parts contains one of these marks. Searching for them avoids decoding most contents
// twice.
var (
	marksOfReplies = [][]byte{[]byte(`"tool_call"`), []byte(`"tool_use"`), []byte(`"tool-call"`), []byte(`"reasoning"`), []byte(`"thinking"`), []byte(`"think"`), []byte(`"thoughtSignature"`)}
	marksOfOutputs = [][]byte{[]byte(`"tool_output"`)}
	marksOfResults = [][]byte{[]byte(`"tool-result"`)}
)

// parts decodes a list that contains one of the marks; both results are nil for any other content.
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

// unwrap puts a content that is a single part into a list. Of a single part that is a result it keeps the
// output as the content.
func (m *message) unwrap() {
	var p part
	if len(m.Content) == 0 || m.Content[0] != '{' || transcript.Decode(m.Content, &p) != nil {
		return
	}
	switch {
	case p.Type == "tool_result" && p.ToolID != "":
		m.ToolCallID, m.Content, m.partFailed = p.ToolID, p.Output, p.IsError
	case p.Type != "" && m.Role != "tool" && m.Role != "function": // the output of a tool may be JSON
		m.Content = transcript.List(m.Content)
	}
}

// takeCalls moves the calls in a reply's content to ToolCalls. Most are there already; these are only removed
// from the content.
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
		id := cmp.Or(p.ToolCallID, p.ToolID, p.CallID, p.ID)
		isCall := p.Type == "tool_call" || p.Type == "tool_use" || p.Type == "tool-call"
		known := listed[id] || id == "" && len(listed) > 0
		thought, thinks := p.thought()
		switch {
		case isCall && known:
		case isCall && len(p.arguments()) > 0:
			m.ToolCalls = append(m.ToolCalls, toolCall{ID: id, Name: cmp.Or(p.Name, p.ToolName, p.CallName), Arguments: p.arguments()})
		case thinks && m.ReasoningContent == "" && m.Reasoning == "":
			m.thoughts = append(m.thoughts, thought)
		case p.Type == "thoughtSignature" && p.Seal != "":
			m.seal = string(p.Seal)
		default:
			rest = append(rest, raw[i])
		}
	}
	m.Content = transcript.List(rest...)
}

// arguments are those of a call in this form; nil for a block of Anthropic's.
func (p *part) arguments() jsontext.Value {
	switch {
	case len(p.Arguments) > 0:
		return p.Arguments
	case len(p.Args) > 0:
		return p.Args
	case p.ToolID != "" || p.CallID != "":
		return p.Input
	}
	return nil
}

// results are the results that a tool message of the AI SDK lists; nil for any other content.
func results(list jsontext.Value) (out []eventlog.Block) {
	_, read := parts(list, marksOfResults)
	for _, p := range read {
		if p.Type != "tool-result" || p.CallID == "" {
			return nil
		}
		var output struct {
			Type  string         `json:"type"`
			Value jsontext.Value `json:"value"`
		}
		value, failed := p.Result, p.Failed
		if len(value) == 0 {
			value = p.Output
			if transcript.Decode(value, &output) == nil && len(output.Value) > 0 {
				value, failed = output.Value, strings.HasPrefix(output.Type, "error")
			}
		}
		inner, err := content.ResultContent(value)
		if err != nil {
			inner = []eventlog.Block{eventlog.Text{Text: transcript.Compact(value)}} // JSON that is no list of parts
		}
		out = append(out, eventlog.ToolResult{CallID: p.CallID, ToolName: p.CallName, Content: inner, IsError: failed})
	}
	return out
}

// outputs is a result's content without the tool_output parts around the contents.
func outputs(content jsontext.Value) jsontext.Value {
	raw, read := parts(content, marksOfOutputs)
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
