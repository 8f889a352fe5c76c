package chat

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
)

// execItem is what a line of `codex exec --json` says that the model did.
type execItem struct {
	ID        transcript.Word `json:"id"`
	Type      transcript.Word `json:"type"`
	Text      transcript.Word `json:"text"`
	Command   transcript.Word `json:"command"`
	Output    transcript.Word `json:"aggregated_output"`
	ExitCode  jsontext.Value  `json:"exit_code"`
	Changes   jsontext.Value  `json:"changes"`
	Server    transcript.Word `json:"server"`
	Tool      transcript.Word `json:"tool"`
	Arguments jsontext.Value  `json:"arguments"`
	Result    transcript.Maybe[struct {
		Content jsontext.Value `json:"content"`
	}] `json:"result"`
	Error transcript.Maybe[struct {
		Message jsontext.Value `json:"message"`
	}] `json:"error"`
	Status transcript.Word `json:"status"`
}

// execLine reports whether the type of a line is one that `codex exec --json` prints.
func execLine(kind string) bool {
	return strings.HasPrefix(kind, "thread.") || strings.HasPrefix(kind, "turn.") || strings.HasPrefix(kind, "item.")
}

// execMessages returns the messages of such a line; none for a thinking, which goes into the next reply.
func (c *conversation) execMessages(p *printed) []jsontext.Value {
	i := p.Item.Value
	if p.Type == "thread.started" {
		c.session.Label(transcript.LabelSessionID, string(p.ThreadID))
	}
	if p.Type != "item.completed" {
		c.out.Skip(string(p.Type))
		return nil
	}
	called := func(name string, arguments, given jsontext.Value, failed bool) []jsontext.Value {
		call := transcript.Object("id", string(i.ID), "name", name, "arguments", orEmpty(arguments))
		return []jsontext.Value{
			transcript.Object("role", "assistant", "tool_calls", transcript.List(call)),
			transcript.Object("role", "user", "content", transcript.List(result(string(i.ID), given, nil, failed))),
		}
	}
	switch i.Type {
	case "agent_message":
		return []jsontext.Value{transcript.Object("role", "assistant", "content", string(i.Text))}
	case "reasoning":
		if c.thought.Len() > 0 {
			c.thought.WriteString("\n\n")
		}
		c.thought.WriteString(string(i.Text))
	case "command_execution":
		return called("shell", transcript.Object("command", string(i.Command)), transcript.JSON(string(i.Output)), string(i.ExitCode) != "0")
	case "file_change":
		return called("file_change", transcript.Object("changes", orNull(i.Changes)), transcript.JSON(string(i.Status)), i.Status == "failed")
	case "mcp_tool_call":
		return called(string(i.Server)+"."+string(i.Tool), i.Arguments, either(i.Error.Value.Message, i.Result.Value.Content), i.Status == "failed")
	default:
		c.out.Skip("item " + string(i.Type)) // such as a list of tasks, for the user's eyes
	}
	return nil
}
