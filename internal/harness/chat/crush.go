package chat

import (
	"encoding/base64"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
)

// crush has the columns of the messages in the database of Crush, and of OpenCode of before version 1, which a
// message has beside its role and its parts.
type crush struct {
	SessionID transcript.Word  `json:"session_id"`
	CreatedAt jsontext.Value   `json:"created_at"`
	Sums      transcript.Count `json:"is_summary_message"`
}

// crushPart is one of the parts, all of which are JSON in a text.
type crushPart struct {
	Type string `json:"type"`
	Data struct {
		Text      string `json:"text"`
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
		URL       string `json:"url"`

		ID      string `json:"id"`
		Name    string `json:"name"`
		Input   string `json:"input"`
		CallID  string `json:"tool_call_id"`
		Content string `json:"content"`
		IsError bool   `json:"is_error"`

		MIMEType string `json:"MIMEType"`
		Data     string `json:"Data"` //nolint:tagliatelle // as Crush writes it
	} `json:"data"`
}

// ofCrush makes the content and the calls of a message's parts.
func (m *message) ofCrush() {
	text, isText := transcript.Text(m.Parts)
	var parts []crushPart
	if !isText || m.Role == "" || transcript.Decode([]byte(text), &parts) != nil {
		return
	}
	var blocks []jsontext.Value
	for _, p := range parts {
		d := &p.Data
		switch p.Type {
		case "text":
			blocks = append(blocks, transcript.Object("type", "text", "text", d.Text))
		case "reasoning":
			blocks = append(blocks, transcript.Object("type", "thinking", "thinking", d.Thinking, "signature", d.Signature))
		case "tool_call":
			m.ToolCalls = append(m.ToolCalls, toolCall{ID: d.ID, Name: d.Name, Arguments: jsontext.Value(transcript.Quote(d.Input))})
		case "tool_result":
			blocks = append(blocks, transcript.Object("type", "tool_result", "tool_use_id", d.CallID, "content", d.Content, "is_error", d.IsError))
		case "image_url":
			blocks = append(blocks, transcript.Object("type", "image_url", "image_url", d.URL))
		case "binary":
			blocks = append(blocks, attached(d.MIMEType, d.Data))
		}
	}
	m.Parts, m.Content = nil, transcript.List(blocks...)
	if m.Role == "tool" {
		m.Role = "user" // whose results are a tool message
	}
	m.IsSummary = m.IsSummary || m.Sums > 0
}

// attached is a file that the user attached: an image, or a text.
func attached(mime, data string) jsontext.Value {
	raw, err := base64.StdEncoding.DecodeString(data)
	if err == nil && strings.HasPrefix(mime, "text/") {
		return transcript.Object("type", "text", "text", transcript.Clean(string(raw)))
	}
	source := transcript.Object("type", "base64", "media_type", mime, "data", data)
	return transcript.Object("type", "image", "source", source)
}
