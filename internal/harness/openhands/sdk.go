package openhands

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// sdkEvent is an event of OpenHands' software agent SDK; Kind is its type.
type sdkEvent struct {
	ID        string `json:"id"`
	Timestamp string `json:"timestamp"`
	Source    string `json:"source"`
	Kind      string `json:"kind"`
	ParentID  string `json:"parent_id"`

	SystemPrompt   jsontext.Value `json:"system_prompt"`
	DynamicContext jsontext.Value `json:"dynamic_context"`

	Message *struct {
		Role    string         `json:"role"`
		Content jsontext.Value `json:"content"`
		sdkReasoning
	} `json:"llm_message"`
	Extended jsontext.Value `json:"extended_content"`

	Thought jsontext.Value `json:"thought"`
	sdkReasoning
	ToolName   string       `json:"tool_name"`
	ToolCallID string       `json:"tool_call_id"`
	ToolCall   *sdkToolCall `json:"tool_call"`
	ResponseID string       `json:"llm_response_id"`

	Observation *sdkObservation `json:"observation"`
	Error       string          `json:"error"`
	Rejection   string          `json:"rejection_reason"`

	Forgotten []string `json:"forgotten_event_ids"`
	Summary   string   `json:"summary"`

	Key   transcript.Word `json:"key"`
	Value jsontext.Value  `json:"value"`

	acpCall
}

// sdkReasoning is a model's thinking in the form of its provider.
type sdkReasoning struct {
	Reasoning string         `json:"reasoning_content"`
	Blocks    jsontext.Value `json:"thinking_blocks"`
	Item      *struct {
		ID        string                     `json:"id"`
		Summary   []string                   `json:"summary"`
		Content   transcript.Maybe[[]string] `json:"content"`
		Encrypted string                     `json:"encrypted_content"`
	} `json:"responses_reasoning_item"`
}

// sdkToolCall is a call in the SDK's form or, in the first versions, in that of chat completions.
type sdkToolCall struct {
	Name      string         `json:"name"`
	Arguments jsontext.Value `json:"arguments"`
	Function  *struct {
		Name      string         `json:"name"`
		Arguments jsontext.Value `json:"arguments"`
	} `json:"function"`
}

type sdkObservation struct {
	Kind     string         `json:"kind"`
	Content  jsontext.Value `json:"content"`
	IsError  bool           `json:"is_error"`
	ExitCode int            `json:"exit_code"`
	Command  string         `json:"command"`
	Path     string         `json:"path"`
	FilePath string         `json:"file_path"`
	Commit   transcript.Maybe[struct {
		Changes map[string]jsontext.Value `json:"changes"`
	}] `json:"commit"`

	// Members of the first versions, which have neither Content nor IsError.
	Output   transcript.Word         `json:"output"`
	Message  transcript.Word         `json:"message"`
	Error    jsontext.Value          `json:"error"` // a text or a boolean
	Metadata transcript.Maybe[shell] `json:"metadata"`
}

// given returns the content of the tool's result.
func (o *sdkObservation) given() []jsontext.Value {
	if len(o.Content) > 0 {
		return []jsontext.Value{o.Content}
	}
	var texts []jsontext.Value
	problem, _ := transcript.Text(o.Error)
	for _, text := range []string{string(o.Output), string(o.Message), problem} {
		if text != "" {
			texts = append(texts, jsontext.Value(transcript.Quote(text)))
		}
	}
	return texts
}

// failed reports whether the call failed.
func (o *sdkObservation) failed() bool {
	problem, _ := transcript.Text(o.Error)
	return o.IsError || o.ExitCode > 0 || problem != "" || string(o.Error) == "true" ||
		o.Kind == "ExecuteBashObservation" && o.Metadata.Value.failed()
}

// changed returns the files that the call changed.
func (o *sdkObservation) changed() []string {
	switch o.Kind {
	case "FileEditorObservation", "StrReplaceEditorObservation", "PlanningFileEditorObservation":
		if o.Command == "create" || o.Command == "str_replace" || o.Command == "insert" || o.Command == "undo_edit" {
			return []string{o.Path}
		}
	case "EditObservation", "WriteFileObservation":
		return []string{o.FilePath}
	case "ApplyPatchObservation":
		return slices.Sorted(maps.Keys(o.Commit.Value.Changes))
	}
	return nil
}

// viewed is an event that the model still sees: its ids in the file and in the log.
type viewed struct{ native, event string }

// sdk appends an event of the SDK.
func (c *conversation) sdk(entry transcript.Entry, e *sdkEvent) error {
	m := &eventlog.Message{GroupID: e.ResponseID}
	var err error
	switch e.Kind {
	case "SystemPromptEvent":
		m.Role = eventlog.RoleSystem
		err = add(m, e.SystemPrompt, e.DynamicContext)
	case "MessageEvent":
		err = c.said(&entry, m, e)
	case "ActionEvent":
		err = c.sdkCall(entry, m, e)
	case "ObservationEvent", "AgentErrorEvent", "UserRejectObservation":
		err = c.sdkResult(&entry, m, e)
	case "Condensation":
		c.condensation(entry, e)
		return nil
	case "ACPToolCallEvent":
		c.acp(entry, e)
		return nil
	case stateUpdate, "TokenEvent", "LLMCompletionLogEvent", "StreamingDeltaEvent":
		c.asks(e)
		c.out.Skip("event " + e.Kind)
		return nil
	default:
		c.session.Keep(entry, "event-"+e.Kind)
		return nil
	}
	if err != nil {
		return err
	}
	if m.Role == eventlog.RoleAssistant {
		m.Model = c.model
	}
	entry.Body = m
	c.see(entry, e)
	return nil
}

// asks reads which model the agent asks, if an update of the state says it.
func (c *conversation) asks(e *sdkEvent) {
	type agent struct {
		LLM transcript.Maybe[struct {
			Model transcript.Word `json:"model"`
		}] `json:"llm"`
	}
	var state struct {
		Agent transcript.Maybe[agent] `json:"agent"`
		agent
	}
	if e.Kind != stateUpdate || e.Key != "agent" && e.Key != "full_state" || transcript.Decode(e.Value, &state) != nil {
		return
	}
	c.model = cmp.Or(string(state.LLM.Value.Model), string(state.Agent.Value.LLM.Value.Model), c.model)
}

// see appends a message that the model sees.
func (c *conversation) see(entry transcript.Entry, e *sdkEvent) {
	if id := c.session.Append(entry); id != "" {
		c.view = append(c.view, viewed{e.ID, id})
	}
}

// said reads a message. A user message from the environment was not written by a human.
func (c *conversation) said(entry *transcript.Entry, m *eventlog.Message, e *sdkEvent) error {
	if e.Message == nil {
		return nil // kept as a custom event, since it has no content
	}
	switch {
	case e.Message.Role == "assistant":
		m.Role = eventlog.RoleAssistant
		if err := e.Message.into(m); err != nil {
			return err
		}
	case e.Message.Role == "system":
		m.Role = eventlog.RoleSystem
	default:
		m.Role = eventlog.RoleUser
		if e.Source != "user" {
			entry.Label(transcript.LabelInjected, "true")
		}
	}
	return add(m, e.Message.Content, e.Extended)
}

// sdkCall reads one call of a reply; the reply's other calls are events of their own.
func (c *conversation) sdkCall(entry transcript.Entry, m *eventlog.Message, e *sdkEvent) error {
	m.Role = eventlog.RoleAssistant
	if err := e.into(m); err != nil {
		return err
	}
	if err := add(m, e.Thought); err != nil {
		return err
	}
	call := eventlog.ToolCall{CallID: e.ToolCallID, Name: e.ToolName}
	if t := e.ToolCall; t != nil {
		name, arguments := t.Name, t.Arguments
		if t.Function != nil {
			name, arguments = t.Function.Name, t.Function.Arguments
		}
		if name != "" {
			call.Name = name
		}
		call.Arguments = c.out.Arguments(entry.Line, call.CallID, arguments)
	}
	m.Blocks = append(m.Blocks, call)
	return nil
}

// sdkResult reads the answer to a call.
func (c *conversation) sdkResult(entry *transcript.Entry, m *eventlog.Message, e *sdkEvent) error {
	m.Role, m.GroupID = eventlog.RoleTool, ""
	result := eventlog.ToolResult{CallID: e.ToolCallID, IsError: true}
	switch o := e.Observation; {
	case o != nil:
		result.IsError = o.failed()
		inner := &eventlog.Message{}
		if err := add(inner, append(o.given(), e.Extended)...); err != nil {
			return err
		}
		result.Content = o.Metadata.Value.around(inner.Blocks)
		if !result.IsError {
			entry.Labels = transcript.WithFilesChanged(entry.Labels, o.changed())
		}
	case e.Kind == "UserRejectObservation":
		result.Content = []eventlog.Block{eventlog.Text{Text: "Action rejected: " + e.Rejection}}
	case e.Error != "":
		result.Content = []eventlog.Block{eventlog.Text{Text: e.Error}}
	}
	m.Blocks = []eventlog.Block{result}
	return nil
}

// condensation appends a compaction. It keeps the events that the model saw until then, except those that it
// names as forgotten.
func (c *conversation) condensation(entry transcript.Entry, e *sdkEvent) {
	forgotten := make(map[string]bool, len(e.Forgotten))
	for _, id := range e.Forgotten {
		forgotten[id] = true
	}
	body := &eventlog.Compaction{Summary: e.Summary, NativeJSON: transcript.Compact(entry.Native)}
	var view []viewed
	for _, v := range c.view {
		if !forgotten[v.native] {
			view = append(view, v)
			body.KeptEventIDs = append(body.KeptEventIDs, v.event)
		}
	}
	c.view = view
	c.session.Boundary(entry, body)
}

// into adds the reasoning to a message. Where there are thinking blocks, reasoning_content only repeats them.
func (r *sdkReasoning) into(m *eventlog.Message) error {
	blocks, err := content.AnthropicBlocks(r.Blocks)
	if err != nil {
		return err
	}
	m.Blocks = append(m.Blocks, blocks...)
	if len(blocks) > 0 {
		return nil
	}
	thinking := eventlog.Thinking{Text: r.Reasoning}
	if r.Item != nil {
		text := content.OpenAIReasoningText(strings.Join(r.Item.Summary, "\n"), strings.Join(r.Item.Content.Value, "\n"), r.Item.Encrypted)
		thinking = content.OpenAIReasoning(cmp.Or(r.Reasoning, text), r.Item.Encrypted, r.Item.ID)
	}
	if thinking != (eventlog.Thinking{}) {
		m.Blocks = append(m.Blocks, thinking)
	}
	return nil
}

// add appends contents to a message: texts, and images by their URLs.
func add(m *eventlog.Message, contents ...jsontext.Value) error {
	for _, raw := range contents {
		if len(raw) > 0 && raw[0] == '{' {
			raw = jsontext.Value("[" + string(raw) + "]") // a prompt is one block
		}
		if len(raw) == 0 || raw[0] != '[' {
			blocks, err := content.ChatBlocks(raw)
			if err != nil {
				return err
			}
			m.Blocks = append(m.Blocks, blocks...)
			continue
		}
		var list []jsontext.Value
		if err := transcript.Decode(raw, &list); err != nil {
			return err
		}
		for _, part := range list {
			blocks, err := parts(part)
			if err != nil {
				return err
			}
			m.Blocks = append(m.Blocks, blocks...)
		}
	}
	return nil
}

// parts returns the blocks of one part of a content.
func parts(part jsontext.Value) ([]eventlog.Block, error) {
	var image struct {
		Type string   `json:"type"`
		URLs []string `json:"image_urls"`
	}
	var out []eventlog.Block
	if transcript.Decode(part, &image) == nil && image.Type == "image" {
		for _, url := range image.URLs {
			block, ok := content.DataURL(url)
			if !ok {
				out = nil // becomes a provider block
				break
			}
			out = append(out, block)
		}
	}
	if len(out) > 0 {
		return out, nil
	}
	return content.ChatBlocks(jsontext.Value("[" + string(part) + "]"))
}
