package copilot

import (
	"cmp"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// text appends a message of the system or the user as it was sent, which is not
// always as it was typed.
func (r *reader) text(entry transcript.Entry, data jsontext.Value, role eventlog.Role) error {
	var d struct {
		Content     string           `json:"content"`
		Transformed string           `json:"transformedContent"`
		Attachments []jsontext.Value `json:"attachments"`
		ParentCall  string           `json:"parentToolCallId"`
		// Source says who sent it: the user where it is absent, or a skill, for instance.
		Source transcript.Word `json:"source"`
	}
	if err := transcript.Decode(data, &d); err != nil {
		return fmt.Errorf("data: %w", err)
	}
	m := &eventlog.Message{Role: role, Blocks: []eventlog.Block{eventlog.Text{Text: cmp.Or(d.Transformed, d.Content)}}}
	for _, a := range d.Attachments {
		m.Blocks = append(m.Blocks, eventlog.ProviderBlock{Provider: Name, JSON: transcript.Compact(a)})
	}
	if role == eventlog.RoleUser && d.Source != "" && d.Source != "user" {
		entry.Labels = map[string]string{transcript.LabelInjected: "true"}
	}
	entry.Body = m
	r.session(d.ParentCall).Append(entry)
	return nil
}

func (r *reader) assistant(entry transcript.Entry, data jsontext.Value) error {
	var d struct {
		MessageID       string           `json:"messageId"`
		Model           string           `json:"model"`
		Content         string           `json:"content"`
		ReasoningText   string           `json:"reasoningText"`
		ReasoningOpaque string           `json:"reasoningOpaque"`
		EncryptedText   string           `json:"encryptedContent"`
		OutputTokens    transcript.Count `json:"outputTokens"`
		ParentCall      string           `json:"parentToolCallId"`
		ToolRequests    []struct {
			ToolCallID string         `json:"toolCallId"`
			Name       string         `json:"name"`
			Arguments  jsontext.Value `json:"arguments"`
		} `json:"toolRequests"`
	}
	if err := transcript.Decode(data, &d); err != nil {
		return fmt.Errorf("data: %w", err)
	}
	m := &eventlog.Message{Role: eventlog.RoleAssistant, GroupID: d.MessageID, Model: d.Model}
	if t := (eventlog.Thinking{Text: d.ReasoningText, EncryptedContent: max(d.ReasoningOpaque, d.EncryptedText)}); t != (eventlog.Thinking{}) {
		m.Blocks = append(m.Blocks, t)
	}
	if d.Content != "" {
		m.Blocks = append(m.Blocks, eventlog.Text{Text: d.Content})
	}
	for _, c := range d.ToolRequests {
		arguments, ok := transcript.RawArguments(c.Arguments)
		if !ok {
			r.out.Warn(entry.Line, "arguments of call %q are not JSON; kept as they are", c.ToolCallID)
		}
		r.edits.Call(c.ToolCallID, filesOf(c.Name, []byte(arguments)))
		m.Blocks = append(m.Blocks, eventlog.ToolCall{CallID: c.ToolCallID, Name: c.Name, Arguments: arguments})
	}
	session := r.session(d.ParentCall)
	if len(m.Blocks) == 0 {
		session.Keep(entry, "empty-reply")
		return nil
	}
	entry.Labels = transcript.Usage{Output: d.OutputTokens}.Labels()
	delete(entry.Labels, transcript.LabelPromptTokens) // the file does not know them
	delete(entry.Labels, transcript.LabelCacheReadTokens)
	entry.Body = m
	session.Append(entry)
	return nil
}

func (r *reader) result(entry transcript.Entry, data jsontext.Value) error {
	var d struct {
		ToolCallID string `json:"toolCallId"`
		Success    bool   `json:"success"`
		ParentCall string `json:"parentToolCallId"`
		Result     *struct {
			Content string `json:"content"`
		} `json:"result"`
		Error *struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := transcript.Decode(data, &d); err != nil {
		return fmt.Errorf("data: %w", err)
	}
	result := eventlog.ToolResult{CallID: d.ToolCallID, IsError: !d.Success}
	text := ""
	switch {
	case d.Result != nil:
		text = d.Result.Content
	case d.Error != nil:
		text = d.Error.Message
	}
	if text != "" {
		result.Content = []eventlog.Block{eventlog.Text{Text: text}}
	}
	if files := r.edits.Result(d.ToolCallID); d.Success {
		entry.Labels = transcript.WithFilesChanged(entry.Labels, files)
	}
	entry.Body = &eventlog.Message{Role: eventlog.RoleTool, Blocks: []eventlog.Block{result}}
	r.session(d.ParentCall).Append(entry)
	return nil
}

// editors are Copilot's own.
var editors = transcript.Editors{"create": {"path"}, "edit": {"path"}, "str_replace_editor": {"path"}}

// filesOf are the files that a call is to change.
func filesOf(tool string, arguments []byte) []string {
	var a struct {
		Command string `json:"command"`
	}
	if tool == "str_replace_editor" && (transcript.Decode(arguments, &a) != nil || a.Command == "view") {
		return nil
	}
	return editors.Files(tool, arguments)
}
