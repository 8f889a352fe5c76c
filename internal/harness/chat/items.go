package chat

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// item is an item of OpenAI's Responses API that is no message. One reply of a model is several items.
type item struct {
	ID        string          `json:"id"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments jsontext.Value  `json:"arguments"`
	Input     string          `json:"input"`
	Action    jsontext.Value  `json:"action"`
	Operation jsontext.Value  `json:"operation"`
	Output    jsontext.Value  `json:"output"`
	Summary   []reasoningPart `json:"summary"`
	Encrypted transcript.Word `json:"encrypted_content"`
}

// itemTypes are the types of items that the model writes, and of those that answer them.
var itemTypes = map[string]bool{
	"reasoning": true, "function_call": true, "custom_tool_call": true, "local_shell_call": true,
	"function_call_output": true, "custom_tool_call_output": true, "local_shell_call_output": true,
	"shell_call": true, "apply_patch_call": true, "shell_call_output": true, "apply_patch_call_output": true,
	"web_search_call": true, "file_search_call": true, "code_interpreter_call": true, "image_generation_call": true,
	"mcp_call": true, "mcp_list_tools": true,
}

// isItem reports whether a message is one of those items.
func (m *message) isItem() bool {
	return itemTypes[m.Type] && (m.Role == "" || m.Role == "assistant" && m.Type == "reasoning")
}

// ofReply reports whether an assistant message may be one of several in a reply: it is an item, or a program made it of
// a record of a transcript.
func (m *message) ofReply() bool {
	return m.Type == "message" && bytes.Contains(m.Content, []byte(`"output_text"`)) || len(m.Metadata.Value.Timestamp) > 0
}

// response appends the items of a whole response of the Responses API, which mini-swe-agent stores in place
// of a message.
func (c *conversation) response(entry transcript.Entry, m *message) error {
	var items []jsontext.Value
	var counted struct {
		Usage transcript.Maybe[struct {
			Input   transcript.Count `json:"input_tokens"`
			Output  transcript.Count `json:"output_tokens"`
			Details transcript.Maybe[struct {
				Cached transcript.Count `json:"cached_tokens"`
			}] `json:"input_tokens_details"`
		}] `json:"usage"`
	}
	if err := transcript.Decode(m.Output, &items); err != nil {
		return err
	}
	if err := transcript.Decode(entry.Native, &counted); err != nil {
		return err
	}
	c.reply = ""
	usage := &usage{Prompt: counted.Usage.Value.Input, CacheHit: counted.Usage.Value.Details.Value.Cached, Completion: counted.Usage.Value.Output}
	for i, raw := range items {
		part := entry
		part.ID, part.Native = fmt.Sprintf("%s/item-%d", entry.ID, i+1), raw
		var inner message
		err := transcript.Decode(raw, &inner)
		if err == nil {
			inner.Usage, inner.Model = usage, cmp.Or(inner.Model, m.Model)
			err = c.message(part, &inner)
		}
		if err != nil {
			c.session.Unreadable(part, err)
		}
	}
	c.reply = ""
	return nil
}

func (c *conversation) item(entry transcript.Entry, m *message) error {
	var it item
	if err := transcript.Decode(entry.Native, &it); err != nil {
		return err
	}
	c.asked, c.pending, c.refused = nil, false, false
	var block eventlog.Block
	switch m.Type {
	case "reasoning":
		block = it.reasoning(m)
	case "function_call":
		block = eventlog.ToolCall{CallID: it.CallID, Name: it.Name, Arguments: c.out.Arguments(entry.Line, it.CallID, it.Arguments)}
	case "custom_tool_call":
		block = eventlog.ToolCall{CallID: it.CallID, Name: it.Name, Arguments: transcript.Wrap("input", it.Input)}
	case "local_shell_call", "shell_call", "apply_patch_call":
		block = eventlog.ToolCall{
			CallID: cmp.Or(it.CallID, it.ID), Name: strings.TrimSuffix(m.Type, "_call"), Arguments: transcript.Compact([]byte(cmp.Or(string(it.Action), string(it.Operation)))),
		}
	case "shell_call_output": // a list of what each command wrote
		it.Output = jsontext.Value(transcript.Quote(transcript.Compact(it.Output)))
		fallthrough
	case "function_call_output", "custom_tool_call_output", "local_shell_call_output", "apply_patch_call_output":
		c.reply = ""
		inner, err := content.ResultContent(it.Output)
		if err != nil {
			return err
		}
		entry.Body = &eventlog.Message{Role: eventlog.RoleTool, Blocks: []eventlog.Block{
			eventlog.ToolResult{CallID: cmp.Or(it.CallID, it.ID), Content: inner, IsError: m.failed() || m.Status == "failed"},
		}}
		c.session.Append(entry)
		return nil
	default: // the provider ran the tool itself
		block = eventlog.ProviderBlock{Provider: content.OpenAI, JSON: transcript.Compact(entry.Native)}
	}
	c.reply = cmp.Or(c.reply, entry.ID)
	if block == (eventlog.Thinking{}) {
		c.session.Keep(entry, "empty-reasoning")
		return nil
	}
	entry.Labels = m.usage().labels()
	entry.Body = &eventlog.Message{Role: eventlog.RoleAssistant, GroupID: c.reply, Model: cmp.Or(m.Model, c.model), Blocks: []eventlog.Block{block}}
	c.session.Append(entry)
	return nil
}

// reasoning is the model's thinking.
func (it *item) reasoning(m *message) eventlog.Block {
	var own []reasoningPart
	if len(m.Content) > 0 && transcript.Decode(m.Content, &own) != nil {
		own = nil
	}
	text := content.OpenAIReasoningText(joinedParts(it.Summary), joinedParts(own), string(it.Encrypted))
	return content.OpenAIReasoning(text, string(it.Encrypted), it.ID)
}

type reasoningPart struct {
	Text string `json:"text"`
}

func joinedParts(parts []reasoningPart) string {
	texts := make([]string, len(parts))
	for i, part := range parts {
		texts[i] = part.Text
	}
	return strings.Join(texts, "\n\n")
}
