// Package copilot reads the event files of Copilot CLI: JSON Lines with one event on each line.
// docs/harness/copilot.md describes the format and the mapping.
package copilot

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Name of the harness.
const Name = "copilot"

// format is the value of LabelHarness in the harness's own sessions.
const format = "copilot-cli"

// Harness is Copilot CLI.
var Harness = transcript.Harness{Name: Name, Aliases: []string{format}, Detect: detect, Read: read}

// detect recognises an event file by its first records.
func detect(p transcript.Probe) bool {
	return p.Is("type", "session.start", "session.model_change", "user.message", "assistant.message", "system.message",
		"assistant.turn_start", "tool.execution_start", "hook.start") && p.Has("type", "id")
}

type record struct {
	Type      string         `json:"type"`
	ID        string         `json:"id"`
	Timestamp string         `json:"timestamp"`
	Data      jsontext.Value `json:"data"`
}

type reader struct {
	out    *transcript.Builder
	main   *transcript.SessionBuilder
	agents map[string]*transcript.SessionBuilder // of subagents, by the call that began them
	edits  transcript.OpenEdits
}

// read reads a whole event file.
func read(in io.Reader) (transcript.Transcript, error) {
	out := transcript.NewBuilder(Name, in)
	r := &reader{out: out, main: out.Session(""), agents: map[string]*transcript.SessionBuilder{}, edits: transcript.OpenEdits{}}
	r.main.Label(transcript.LabelHarness, format)
	return out.Finish(transcript.ReadLines(in, out.Warn, r.record))
}

func (r *reader) record(line transcript.Record) {
	entry := transcript.Entry{Line: line.Line, Native: line.JSON, ID: transcript.PositionID(line)}
	var rec record
	err := transcript.Decode(line.JSON, &rec)
	if err == nil {
		entry.Time = transcript.ParseTime(rec.Timestamp)
		if rec.ID != "" && rec.ID != "REDACTED" {
			entry.ID = rec.ID
		}
		err = r.event(entry, &rec)
	}
	if err != nil {
		r.main.Unreadable(entry, err)
	}
}

func (r *reader) event(entry transcript.Entry, rec *record) error {
	switch rec.Type {
	case "session.start":
		return r.start(rec.Data)
	case "system.message":
		return r.text(entry, rec.Data, eventlog.RoleSystem)
	case "user.message":
		return r.text(entry, rec.Data, eventlog.RoleUser)
	case "assistant.message":
		return r.assistant(entry, rec.Data)
	case "tool.execution_complete":
		return r.result(entry, rec.Data)
	case "session.compaction_complete":
		return r.compaction(entry, rec.Data)
	}
	for _, prefix := range []string{"hook.", "permission.", "assistant.turn_", "tool.execution_", "session."} {
		if strings.HasPrefix(rec.Type, prefix) && rec.Type != "session.truncation" && rec.Type != "session.error" {
			r.out.Skip(rec.Type)
			return nil
		}
	}
	r.main.Keep(entry, rec.Type)
	return nil
}

func (r *reader) start(data jsontext.Value) error {
	var d struct {
		SessionID      string `json:"sessionId"`
		CopilotVersion string `json:"copilotVersion"`
	}
	if err := transcript.Decode(data, &d); err != nil {
		return fmt.Errorf("data: %w", err)
	}
	r.main.Label(transcript.LabelSessionID, d.SessionID)
	r.main.Label(transcript.LabelVersion, d.CopilotVersion)
	return nil
}

// session returns the conversation of the subagent that a call began; the main one if there is no call.
func (r *reader) session(parentCall string) *transcript.SessionBuilder {
	if parentCall == "" {
		return r.main
	}
	s := r.agents[parentCall]
	if s == nil {
		s = r.out.Session(fmt.Sprintf("sidechain-%d", len(r.agents)+1))
		s.Label(transcript.LabelHarness, format)
		s.SetParentCall(parentCall)
		r.agents[parentCall] = s
	}
	return s
}

func (r *reader) compaction(entry transcript.Entry, data jsontext.Value) error {
	var d struct {
		Success   *bool   `json:"success"`
		Summary   string  `json:"summaryContent"`
		PreTokens *uint64 `json:"preCompactionTokens"`
	}
	if err := transcript.Decode(data, &d); err != nil {
		return fmt.Errorf("data: %w", err)
	}
	if d.Success != nil && !*d.Success {
		r.main.Keep(entry, "failed-compaction")
		return nil
	}
	r.main.Boundary(entry, &eventlog.Compaction{Summary: d.Summary, PreTokens: d.PreTokens, NativeJSON: string(entry.Native)})
	return nil
}

// text appends a message of the system or the user in the form that was sent to the model, which may differ
// from what the user typed.
func (r *reader) text(entry transcript.Entry, data jsontext.Value, role eventlog.Role) error {
	var d struct {
		Content     string           `json:"content"`
		Transformed string           `json:"transformedContent"`
		Attachments []jsontext.Value `json:"attachments"`
		ParentCall  string           `json:"parentToolCallId"`
		// Source is who sent it, such as a skill; it is absent or "user" for the user.
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
			Type       string         `json:"type"` // "custom" where the arguments are free text
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
		var arguments string
		if text, free := transcript.Text(c.Arguments); free && c.Type == "custom" {
			arguments = transcript.Wrap("input", text)
		} else {
			arguments = r.out.Arguments(entry.Line, c.ToolCallID, c.Arguments)
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
	delete(entry.Labels, transcript.LabelPromptTokens) // the file does not have these counts
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

// editors are Copilot's own tools that change files.
var editors = transcript.Editors{"create": {"path"}, "edit": {"path"}, "str_replace_editor": {"path"}}

// filesOf returns the files that a call is to change.
func filesOf(tool string, arguments []byte) []string {
	var a struct {
		Command string `json:"command"`
		Input   string `json:"input"`
	}
	if tool == "apply_patch" && transcript.Decode(arguments, &a) == nil {
		return transcript.PatchFiles(a.Input)
	}
	if tool == "str_replace_editor" && (transcript.Decode(arguments, &a) != nil || a.Command == "view") {
		return nil
	}
	return editors.Files(tool, arguments)
}
