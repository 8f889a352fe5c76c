package openhands

import (
	"cmp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// acpCall is a call that another agent made, which OpenHands drives over the Agent Client Protocol. It is written
// when it begins and when it ends.
type acpCall struct {
	Title   transcript.Word `json:"title"`
	Status  transcript.Word `json:"status"`
	ToolOf  transcript.Word `json:"tool_kind"`
	Input   jsontext.Value  `json:"raw_input"`
	Output  jsontext.Value  `json:"raw_output"`
	Content transcript.Maybe[[]struct {
		Content struct {
			Text string `json:"text"`
		} `json:"content"`
	}] `json:"content"`
	IsError bool `json:"is_error"`
}

// acp appends the call and its result where it ended.
func (c *conversation) acp(entry transcript.Entry, e *sdkEvent) {
	if e.Status != "completed" && e.Status != "failed" {
		c.session.Keep(entry, "event-"+e.Kind)
		return
	}
	id := c.session.ReserveCallID(e.ToolCallID)
	arguments := transcript.Wrap("title", string(e.Title))
	if len(e.Input) > 0 && e.Input[0] == '{' {
		arguments = transcript.Compact(e.Input)
	}
	entry.Body = &eventlog.Message{Role: eventlog.RoleAssistant, Blocks: []eventlog.Block{
		eventlog.ToolCall{CallID: id, Name: cmp.Or(string(e.ToolOf), "tool"), Arguments: arguments},
	}}
	c.see(entry, e)
	result := eventlog.ToolResult{CallID: id, IsError: e.IsError || e.Status == "failed"}
	if text := e.returned(); text != "" {
		result.Content = []eventlog.Block{eventlog.Text{Text: text}}
	}
	entry.ID += "/result"
	entry.Body = &eventlog.Message{Role: eventlog.RoleTool, Blocks: []eventlog.Block{result}}
	c.see(entry, e)
}

// returned returns the result as a text.
func (a *acpCall) returned() string {
	if text, ok := transcript.Text(a.Output); ok && text != "" {
		return text
	}
	var texts []string
	for _, part := range a.Content.Value {
		if part.Content.Text != "" {
			texts = append(texts, part.Content.Text)
		}
	}
	if len(texts) > 0 || len(a.Output) == 0 || a.Output[0] == 'n' || a.Output[0] == '"' {
		return strings.Join(texts, "\n")
	}
	return transcript.Compact(a.Output)
}
