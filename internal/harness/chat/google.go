package chat

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// inGoogle reports whether a message is in Google's form: its parts have no type, but members by which they
// are recognised.
func (m *message) inGoogle() bool {
	var parts []struct {
		Type string `json:"type"`
		Kind string `json:"part_kind"`
	}
	if len(m.Content) > 0 || len(m.Parts) == 0 || transcript.Decode(m.Parts, &parts) != nil {
		return false
	}
	for _, p := range parts {
		if p.Type != "" || p.Kind != "" {
			return false
		}
	}
	return true
}

// recordInGoogle reports whether a record of a file has such messages at a path.
func recordInGoogle(record map[string]string, at string) bool {
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { _, ok := record[at+name]; return ok })
	}
	return has("role") && has("parts[].text", "parts[].functionCall", "parts[].function_call", "parts[].inlineData", "parts[].inline_data") &&
		!has("parts[].type", "parts[].part_kind")
}

// inParts reports whether the first message is in Google's form.
func inParts(messages []element) bool {
	var m message
	return len(messages) > 0 && transcript.Decode(messages[0].raw, &m) == nil && m.inGoogle()
}

// googleSystem reads a system prompt in Google's form: a text, or a content with parts.
func googleSystem(raw jsontext.Value) ([]eventlog.Block, error) {
	var c struct {
		Parts jsontext.Value `json:"parts"`
	}
	if transcript.Decode(raw, &c) == nil && len(c.Parts) > 0 {
		raw = c.Parts
	}
	return content.GoogleBlocks(raw)
}

// google reads a message in Google's form, in which calls and results may have no ids.
func (c *conversation) google(entry transcript.Entry, m *message) error {
	blocks, err := content.GoogleBlocks(m.Parts)
	if err != nil {
		return err
	}
	said := &eventlog.Message{Role: eventlog.RoleUser}
	switch m.Role {
	case "system", "developer":
		said.Role = eventlog.RoleSystem
	case "assistant", "model":
		said.Role, said.Model = eventlog.RoleAssistant, c.model
		c.name(entry.ID, blocks)
	default:
		c.pair(blocks)
		if len(blocks) > 0 && resultsAlone(blocks) {
			said.Role = eventlog.RoleTool
		} else if geminiWrote(blocks) {
			entry.Label(transcript.LabelInjected, "true")
		}
	}
	said.Blocks = blocks
	entry.Body = said
	c.session.Append(entry)
	return nil
}

// open has the calls in Google's form that have no result yet.
type open struct {
	ids map[string][]string // by tool name, oldest first
	// answered are the ids of calls that results named.
	answered map[string]bool
}

// name gives ids to calls that have none.
func (c *conversation) name(id string, blocks []eventlog.Block) {
	c.open = open{ids: map[string][]string{}, answered: map[string]bool{}}
	for i, b := range blocks {
		call, ok := b.(eventlog.ToolCall)
		if !ok {
			continue
		}
		if call.CallID == "" {
			call.CallID = c.session.ReserveCallID(fmt.Sprintf("call-%s-%d", id, i+1))
			blocks[i] = call
		}
		c.open.ids[call.Name] = append(c.open.ids[call.Name], call.CallID)
	}
}

// pair gives a result that names no call the id of the first open call of the same tool.
func (c *conversation) pair(blocks []eventlog.Block) {
	for i, b := range blocks {
		result, ok := b.(eventlog.ToolResult)
		if !ok {
			continue
		}
		if result.CallID == "" || !c.session.Called(result.CallID) {
			result.CallID = cmp.Or(c.open.first(result.ToolName), result.CallID)
			blocks[i] = result
		} else if c.open.answered != nil {
			c.open.answered[result.CallID] = true
		}
	}
}

// first removes and returns the first open call of a tool; "" if there is none.
func (o open) first(name string) string {
	for len(o.ids[name]) > 0 {
		id := o.ids[name][0]
		o.ids[name] = o.ids[name][1:]
		if !o.answered[id] {
			return id
		}
	}
	return ""
}

// geminiTags are the elements that Gemini CLI writes in user messages, in parts of their own.
var geminiTags = transcript.Tags("session_context", "hook_context", "state_snapshot", "system-reminder")

// geminiWrote reports whether Gemini CLI wrote all of a message.
func geminiWrote(blocks []eventlog.Block) bool {
	return len(blocks) > 0 && !slices.ContainsFunc(blocks, func(b eventlog.Block) bool {
		text, ok := b.(eventlog.Text)
		return !ok || !transcript.Inserted(text.Text, geminiTags, geminiTags)
	})
}
