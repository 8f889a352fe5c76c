package openhands

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// call appends an action that is one of the model's calls. The reply's text goes
// before the first of them.
func (c *conversation) call(entry transcript.Entry, e *event) error {
	r := e.ToolCall.Reply
	m := &eventlog.Message{Role: eventlog.RoleAssistant, GroupID: r.ID, Model: r.Model}
	call := eventlog.ToolCall{CallID: e.ToolCall.ToolCallID, Name: e.ToolCall.FunctionName, Arguments: transcript.Compact(e.Args)}
	if len(r.Choices) > 0 {
		said := r.Choices[0].Message
		if r.ID == "" || r.ID != c.reply {
			if said.Reasoning != "" {
				m.Blocks = append(m.Blocks, eventlog.Thinking{Text: said.Reasoning})
			}
			text, err := content.ChatBlocks(said.Content)
			if err != nil {
				return err
			}
			m.Blocks = append(m.Blocks, text...)
			entry.Labels = r.labels()
		}
		for _, made := range said.ToolCalls {
			if made.ID == call.CallID {
				call.Name = made.Function.Name
				call.Arguments = c.arguments(entry, made.Function.Arguments)
			}
		}
	}
	c.reply = r.ID
	m.Blocks = append(m.Blocks, call)
	entry.Body = m
	c.session.Append(entry)
	return nil
}

func (c *conversation) arguments(entry transcript.Entry, raw jsontext.Value) string {
	arguments, ok := transcript.RawArguments(raw)
	if !ok {
		c.out.Warn(entry.Line, "arguments of a call are not JSON; kept as they are")
	}
	return arguments
}

// action appends an action of an agent that calls no functions: the action itself
// is the call.
func (c *conversation) action(entry transcript.Entry, e *event) {
	id := c.session.ReserveCallID("action-" + string(e.ID))
	c.calls[string(e.ID)] = id
	entry.Body = &eventlog.Message{Role: eventlog.RoleAssistant, Blocks: []eventlog.Block{
		eventlog.ToolCall{CallID: id, Name: e.Action, Arguments: transcript.Compact(e.Args)},
	}}
	c.session.Append(entry)
}

func (c *conversation) observation(entry transcript.Entry, e *event) {
	id := c.calls[string(e.Cause)]
	if e.ToolCall != nil {
		id = e.ToolCall.ToolCallID
	}
	switch {
	case id != "":
		result := eventlog.ToolResult{CallID: id, IsError: e.failed()}
		if e.Content != "" {
			result.Content = []eventlog.Block{eventlog.Text{Text: e.Content}}
		}
		entry.Labels = transcript.WithFilesChanged(entry.Labels, e.filesChanged())
		entry.Body = &eventlog.Message{Role: eventlog.RoleTool, Blocks: []eventlog.Block{result}}
		c.session.Append(entry)
	case e.Observation == "error":
		// An error that answers no call is shown to the model as the user's message.
		entry.Labels = map[string]string{transcript.LabelInjected: "true"}
		c.say(entry, eventlog.RoleUser, e.Content)
	default:
		c.session.Keep(entry, "observation-"+e.Observation)
	}
}
