package cursor

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// reply appends a part of a reply and, if it is a tool's, the result after it. A
// reply ends where another model call begins: at a text or thought after a tool,
// or at a tool of another call.
func (c *chat) reply(entry transcript.Entry, b *bubble) {
	call := ""
	if b.Tool != nil {
		call = b.Tool.ModelCallID
	}
	again := c.tools && (b.Tool == nil || call == "" || call != c.call)
	if c.group == "" || again {
		c.group, c.tools = entry.ID, false
	}
	if b.Tool != nil {
		c.tools, c.call = true, call
	}
	model := b.Model.Name
	if model == "" {
		model = c.composer.Model.Name
	}
	m := &eventlog.Message{Role: eventlog.RoleAssistant, GroupID: c.group, Model: model, Blocks: b.thinking()}
	if b.Text != "" {
		m.Blocks = append(m.Blocks, eventlog.Text{Text: b.Text})
	}
	if b.Tool == nil {
		if len(m.Blocks) == 0 {
			c.out.Skip("bubble without content")
			return
		}
	} else {
		c.tool(entry, b, m)
		return
	}
	entry.Labels = b.usage()
	entry.Body = m
	c.session.Append(entry)
}

func (b *bubble) usage() map[string]string {
	return transcript.Usage{Prompt: b.Tokens.Input, Output: b.Tokens.Output}.Labels()
}

func (b *bubble) thinking() []eventlog.Block {
	thoughts := b.Thoughts
	if b.Thinking != (thought{}) {
		thoughts = []thought{b.Thinking}
	}
	var blocks []eventlog.Block
	for _, t := range thoughts {
		if t.Text+t.Thinking+t.Signature != "" {
			blocks = append(blocks, eventlog.Thinking{Text: t.Text + t.Thinking, Signature: t.Signature})
		}
	}
	return blocks
}

func (c *chat) tool(entry transcript.Entry, b *bubble, m *eventlog.Message) {
	raw := b.Tool.RawArgs
	if text(raw) == "" {
		raw = b.Tool.Params
	}
	arguments, ok := transcript.RawArguments(raw)
	if len(raw) == 0 {
		arguments, ok = "{}", true
	}
	if !ok {
		c.out.Warn(entry.Line, "the arguments of tool call %.100q are not JSON", b.Tool.CallID)
	}
	id := c.session.ReserveCallID(b.Tool.CallID)
	m.Blocks = append(m.Blocks, eventlog.ToolCall{CallID: id, Name: b.Tool.Name, Arguments: arguments})
	said := entry
	said.Labels, said.Body = b.usage(), m
	if c.session.Append(said) == "" {
		return
	}
	content, failed, done := b.Tool.outcome()
	if !done {
		return
	}
	answer := entry
	answer.ID = entry.ID + "/result"
	result := eventlog.ToolResult{CallID: id, ToolName: b.Tool.Name, IsError: failed}
	if content != "" {
		result.Content = []eventlog.Block{eventlog.Text{Text: content}}
	}
	if !failed && b.Tool.Status == "completed" {
		answer.Labels = transcript.WithFilesChanged(nil, b.Tool.filesChanged())
	}
	answer.Body = &eventlog.Message{Role: eventlog.RoleTool, Blocks: []eventlog.Block{result}}
	c.session.Append(answer)
}

// outcome is what came of a call; done is false while it has not ended.
func (t *tool) outcome() (content string, failed, done bool) {
	content = text(t.Result)
	switch t.Status {
	case "error", "cancelled":
		failed = true
	case "completed":
	default:
		return content, t.Decision == "rejected", content != ""
	}
	if failed && content == "" {
		content = text(t.Error)
	}
	return content, failed || t.Decision == "rejected" || t.Additional.Status == "error", true
}

// marked are the members of a compaction's bubble that say something of it; the
// others are empty lists that every bubble has.
var marked = []string{"_v", "type", "bubbleId", "capabilityType", "createdAt", "text", "serverBubbleId", "requestId"}

func markerOf(native []byte) string {
	v := transcript.Object()
	for _, name := range marked {
		if value, ok := transcript.MemberOf(native, name); ok {
			v = transcript.With(v, name, jsontext.Value(transcript.Compact(value)))
		}
	}
	return string(v)
}

// editors are Cursor's own, with the members of their arguments, as the model or as the
// tool has them, that name the file.
var editors = transcript.Editors{
	"edit_file":      {"target_file", "relativeWorkspacePath"},
	"edit_file_v2":   {"target_file", "relativeWorkspacePath"},
	"search_replace": {"file_path", "relativeWorkspacePath"},
	"multiedit":      {"file_path", "relativeWorkspacePath"},
	"MultiEdit":      {"file_path", "relativeWorkspacePath"},
	"write":          {"file_path", "relativeWorkspacePath"},
	"delete_file":    {"target_file", "relativeWorkspacePath"},
	"edit_notebook":  {"target_notebook", "relativeWorkspacePath"},
}

// filesChanged is the file of a tool that has done its work: as the model named it, or
// else as the tool took it.
func (t *tool) filesChanged() []string {
	for _, raw := range [][]byte{t.RawArgs, t.Params} {
		if files := editors.Files(t.Name, []byte(text(raw))); len(files) > 0 {
			return files[:1]
		}
	}
	return nil
}
