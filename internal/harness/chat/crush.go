package chat

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
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

		ResultMIME string `json:"mime_type"` // of a result that is a picture
		ResultData string `json:"data"`
		Seal       string `json:"thought_signature"`
		Responses  struct {
			responsesData
			Inner responsesData `json:"data"`
		} `json:"responses_data"`

		Command  string `json:"command"` // of a command that the user ran
		Output   string `json:"output"`
		ExitCode int    `json:"exit_code"`
	} `json:"data"`
}

// responsesData is what OpenAI needs again of a reasoning.
type responsesData struct {
	ID        string          `json:"item_id"`
	Encrypted transcript.Word `json:"encrypted_content"`
}

// ofCrush makes the content and the calls of a message's parts.
func (m *message) ofCrush() {
	text, isText := transcript.Text(m.Parts)
	var parts []crushPart
	if !isText || m.Role == "" || transcript.Decode([]byte(text), &parts) != nil {
		return
	}
	var blocks []jsontext.Value
	commands := 0
	for _, p := range parts {
		d := &p.Data
		switch p.Type {
		case "text":
			blocks = append(blocks, transcript.Object("type", "text", "text", d.Text))
		case "reasoning":
			m.seal = d.Seal
			of := d.Responses.responsesData
			if of.Encrypted == "" {
				of = d.Responses.Inner
			}
			if of.Encrypted != "" {
				m.thoughts = append(m.thoughts, content.OpenAIReasoning(d.Thinking, string(of.Encrypted), of.ID))
				continue
			}
			blocks = append(blocks, transcript.Object("type", "thinking", "thinking", d.Thinking, "signature", d.Signature))
		case "tool_call":
			m.ToolCalls = append(m.ToolCalls, toolCall{ID: d.ID, Name: d.Name, Arguments: jsontext.Value(transcript.Quote(d.Input))})
		case "tool_result":
			inner := transcript.JSON(d.Content)
			if d.ResultMIME != "" && d.ResultData != "" && !d.IsError {
				inner = transcript.List(transcript.Object("type", "text", "text", d.Content), attached(d.ResultMIME, d.ResultData))
			}
			blocks = append(blocks, transcript.Object("type", "tool_result", "tool_use_id", d.CallID, "content", inner, "is_error", d.IsError))
		case "shell_command":
			commands++
			text := "$ " + d.Command + "\n" + d.Output + "\n(exit code " + strconv.Itoa(d.ExitCode) + ")"
			blocks = append(blocks, transcript.Object("type", "text", "text", text))
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
	if commands > 0 && commands == len(blocks) {
		m.Synthetic = "shell_command"
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
