package chat

import (
	"cmp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// around are the members that Continue writes beside a message.
type around struct {
	Context transcript.Maybe[[]contextItem] `json:"contextItems"`
	States  transcript.Maybe[[]callState]   `json:"toolCallStates"`
	Summary transcript.Word                 `json:"conversationSummary"` // of all before and the message
}

// contextItem is what a user attached to a prompt, or a part of what a call gave.
type contextItem struct {
	Content transcript.Word `json:"content"`
	Status  transcript.Word `json:"status"` // of a command
}

// callState is a call and what became of it. Only the outputs in it are sent to the model.
type callState struct {
	ID       transcript.Word                 `json:"toolCallId"`
	ToolCall transcript.Maybe[toolCall]      `json:"toolCall"`
	Status   transcript.Word                 `json:"status"`
	Output   transcript.Maybe[[]contextItem] `json:"output"`
}

// The texts that Continue sends in place of an output.
const (
	noOutput  = "No tool output"
	cancelled = "The user cancelled this tool call."
)

// result is what the model sees of a call; ok is false while it has none.
func (s *callState) result() (eventlog.ToolResult, bool) {
	texts := make([]string, 0, len(s.Output.Value))
	for _, item := range s.Output.Value {
		text := string(item.Content)
		if f := s.ToolCall.Value.Function; item.Status != "" && f != nil && f.Name == "run_terminal_command" {
			text += "\n[Status: " + string(item.Status) + "]"
		}
		texts = append(texts, text)
	}
	text := strings.Join(texts, "\n\n")
	switch {
	case s.Status == "canceled":
		text = cancelled
	case len(texts) > 0:
	case s.Status == "done":
		text = noOutput
	case s.Status != "errored":
		return eventlog.ToolResult{}, false
	}
	r := eventlog.ToolResult{CallID: cmp.Or(string(s.ID), s.ToolCall.Value.ID), IsError: s.Status == "canceled" || s.Status == "errored"}
	if text != "" {
		r.Content = []eventlog.Block{eventlog.Text{Text: text}}
	}
	return r, r.CallID != ""
}

// attached appends what a user attached to a prompt, before the prompt.
func (c *conversation) attached(entry transcript.Entry, m *message) {
	var blocks []eventlog.Block
	for _, item := range m.Context.Value {
		if strings.TrimSpace(string(item.Content)) != "" {
			blocks = append(blocks, eventlog.Text{Text: string(item.Content) + "\n"})
		}
	}
	if m.Role != "user" || len(blocks) == 0 {
		return
	}
	entry.ID += "/context"
	entry.Labels = map[string]string{transcript.LabelInjected: "true"}
	entry.Body = &eventlog.Message{Role: eventlog.RoleUser, Blocks: blocks}
	c.session.Append(entry)
}

// answers appends the results of a message's calls.
func (c *conversation) answers(entry transcript.Entry, m *message) {
	var blocks []eventlog.Block
	for i := range m.States.Value {
		if r, ok := m.States.Value[i].result(); ok {
			blocks = append(blocks, r)
			if c.given == nil {
				c.given = map[string]bool{}
			}
			c.given[r.CallID] = true
		}
	}
	if len(blocks) == 0 {
		return
	}
	entry.ID, entry.Labels = entry.ID+"/results", nil
	entry.Body = &eventlog.Message{Role: eventlog.RoleTool, Blocks: blocks}
	c.session.Append(entry)
}

// sums appends a compaction if a message has a summary beside it. Only the system prompts stay.
func (c *conversation) sums(entry transcript.Entry, m *message) {
	if m.Summary == "" {
		return
	}
	body := &eventlog.Compaction{Summary: string(m.Summary)}
	if m.isSummary() {
		body.NativeJSON = transcript.Compact(entry.Native)
	} else {
		entry.ID += "/summary"
	}
	c.look()
	body.KeptEventIDs = slices.Clone(c.known.systems)
	entry.Labels = nil
	c.session.Boundary(entry, body)
}

// isSummary reports whether a message says the same as the summary beside it.
func (m *message) isSummary() bool {
	text, _ := transcript.Text(m.Content)
	return m.Summary != "" && text == string(m.Summary)
}

// thinks appends the reasoning that Continue writes as a message before the reply.
func (c *conversation) thinks(entry transcript.Entry, m *message, reply string) error {
	blocks, err := content.ChatBlocks(m.Content)
	if err != nil {
		return err
	}
	text := strings.Join(transcript.Texts(blocks), "\n")
	said := make([]jsontext.Value, 0, 2)
	if text != "" || m.Signature != "" {
		said = append(said, transcript.Object("type", "thinking", "thinking", text, "signature", string(m.Signature)))
	}
	if m.Redacted != "" {
		said = append(said, transcript.Object("type", "redacted_thinking", "data", string(m.Redacted)))
	}
	if blocks, err = content.ChatBlocks(transcript.List(said...)); err != nil {
		return err
	}
	c.reply = cmp.Or(reply, entry.ID)
	entry.Body = &eventlog.Message{Role: eventlog.RoleAssistant, GroupID: c.reply, Blocks: slices.Clone(blocks), Model: c.model}
	c.session.Append(entry)
	return nil
}
