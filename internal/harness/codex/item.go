package codex

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// labelItemID is the provider's id of an item. For reasoning with encrypted content, which the provider needs
// again with its id, the id is the thinking's signature instead.
const labelItemID = "codex.item_id"

// labelItem is the type of an item, or itemMeta, if that does not follow from the event.
const labelItem = "codex.item"

const itemMeta = "session_meta"

// usualItem are the types that need no label.
var usualItem = map[string]bool{"message": true, "reasoning": true, "function_call": true, "function_call_output": true}

func (r *reader) responseItem(entry transcript.Entry, payload jsontext.Value, n *notes) error {
	var it item
	if err := transcript.Decode(payload, &it); err != nil {
		return err
	}
	if it.Type == "" && it.Role != "" { // of a program that makes rollouts of other transcripts
		it.Type = "message"
	}
	entry.Labels = map[string]string{}
	if it.ID != "" && len(it.ID) <= transcript.MaxLabelValue {
		entry.Labels[labelItemID] = it.ID
	}
	if !usualItem[it.Type] && len(it.Type) <= transcript.MaxLabelValue {
		entry.Labels[labelItem] = it.Type
	}
	switch it.Type {
	case "message":
		return r.message(entry, &it)
	case "reasoning":
		thinking := content.OpenAIReasoning(it.reasoning(), it.EncryptedContent, it.ID)
		if thinking == (eventlog.Thinking{}) {
			r.group(entry)
			r.session.Keep(entry, "empty-reasoning")
			return nil
		}
		if thinking.Signature != "" {
			delete(entry.Labels, labelItemID)
		}
		r.fromModel(entry, &it, thinking)
	case "function_call":
		arguments := r.out.Arguments(entry.Line, it.CallID, it.Arguments)
		r.fromModel(entry, &it, eventlog.ToolCall{CallID: it.CallID, Name: it.Namespace + it.Name, Arguments: arguments})
	case "custom_tool_call":
		r.fromModel(entry, &it, eventlog.ToolCall{CallID: it.CallID, Name: it.Namespace + it.Name, Arguments: transcript.Wrap("input", it.Input)})
	case "local_shell_call":
		r.fromModel(entry, &it, eventlog.ToolCall{CallID: it.CallID, Name: "local_shell", Arguments: transcript.Compact(it.Action)})
	case "tool_search_call":
		if it.CallID == "" {
			it.CallID = r.session.ReserveCallID(r.searches.begin())
		}
		r.fromModel(entry, &it, eventlog.ToolCall{CallID: it.CallID, Name: "tool_search", Arguments: transcript.Compact(it.Arguments)})
	case "function_call_output", "custom_tool_call_output", "local_shell_call_output":
		return r.result(entry, &it, it.Output, n)
	case "tool_search_output":
		if it.CallID == "" {
			it.CallID = r.searches.end()
		}
		return r.result(entry, &it, jsontext.Value(transcript.Quote(transcript.Compact(it.Tools))), n)
	case "web_search_call", "image_generation_call":
		// The provider ran the tool itself.
		r.fromModel(entry, &it, eventlog.ProviderBlock{Provider: content.OpenAI, JSON: transcript.Compact(payload)})
	case agentMessage:
		r.fromAgent(entry, &it)
	case "ghost_snapshot", "additional_tools", "configuration_update":
		r.session.Record(entry, it.Type)
	default:
		r.session.Keep(entry, it.Type)
	}
	return nil
}

// searches names the calls of tool_search that have no id.
type searches struct{ begun, ended int }

func (s *searches) begin() string {
	s.begun++
	return "tool_search-" + strconv.Itoa(s.begun)
}

// end returns the id of the first call without an output; empty if there is none.
func (s *searches) end() string {
	if s.ended == s.begun {
		return ""
	}
	s.ended++
	return "tool_search-" + strconv.Itoa(s.ended)
}

func (r *reader) fromModel(entry transcript.Entry, it *item, b eventlog.Block) {
	r.heard.clear()
	entry.Body = &eventlog.Message{
		Role: eventlog.RoleAssistant, GroupID: r.group(entry), Model: r.model, Blocks: []eventlog.Block{b},
	}
	if c, ok := b.(eventlog.ToolCall); ok {
		if files := filesChanged(c); files != "" {
			entry.Labels[transcript.LabelFilesChanged] = files
		}
	}
	r.note(it, r.append(entry))
}

// agentMessage is the type of an item with what another agent wrote to this one.
const agentMessage = "agent_message"

// fromAgent makes a message of what another agent wrote. A part of it may be encrypted by the provider; only
// an item of this type can hold that part.
func (r *reader) fromAgent(entry transcript.Entry, it *item) {
	var blocks []eventlog.Block
	for _, text := range textsOf(it.Content) {
		blocks = append(blocks, eventlog.Text{Text: text})
	}
	if len(blocks) == 0 {
		r.session.Keep(entry, it.Type)
		return
	}
	injectedLabels(entry.Labels, nil)
	entry.Body = &eventlog.Message{Role: eventlog.RoleUser, Blocks: blocks}
	r.reply = ""
	r.note(it, r.append(entry))
}

// communication reads what another agent wrote to this one where it is a record of its own.
func (r *reader) communication(entry transcript.Entry, payload jsontext.Value) error {
	var c struct {
		Content string `json:"content"`
	}
	if err := transcript.Decode(payload, &c); err != nil {
		return err
	}
	if c.Content == "" { // only the provider can read it
		r.session.Record(entry, interAgent)
		return nil
	}
	entry.Labels = map[string]string{labelItem: interAgent}
	injectedLabels(entry.Labels, nil)
	entry.Body = &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: c.Content}}}
	r.reply = ""
	r.append(entry)
	return nil
}

// note records the event that an item became.
func (r *reader) note(it *item, id string) {
	if key := it.key(); id != "" && key != "" {
		r.items[key] = id
	}
}

// inPhase returns the parts of a message, each after the phase that the model gave the message.
func inPhase(phase string, parts []eventlog.Block) []eventlog.Block {
	if phase == "" {
		return parts
	}
	var out []eventlog.Block
	for _, b := range parts {
		out = append(out, eventlog.ProviderBlock{Provider: content.OpenAI, JSON: string(transcript.Object("phase", phase))}, b)
	}
	return out
}

func (r *reader) message(entry transcript.Entry, it *item) error {
	blocks, err := content.ChatBlocks(it.Content)
	if err != nil {
		return err
	}
	m := &eventlog.Message{Blocks: blocks}
	entry.Body = m
	switch it.Role {
	case "assistant":
		m.Role, m.Model, m.GroupID, m.Blocks = eventlog.RoleAssistant, r.model, r.group(entry), inPhase(it.Phase, blocks)
		r.heard.clear()
		r.note(it, r.append(entry))
		return nil
	case "developer", "system":
		m.Role = eventlog.RoleSystem
		if r.session.Len() > 0 {
			about, _ := it.injected()
			injectedLabels(entry.Labels, about)
		}
	default:
		m.Role = eventlog.RoleUser
		if event := r.heard.before(blocks); event != "" {
			r.session.Record(entry, "response_item."+it.Type)
			r.note(it, event)
			return nil
		}
		if about, ok := it.injected(); ok {
			injectedLabels(entry.Labels, about)
		}
		r.heard.item(textOf(it.Content))
	}
	r.reply = ""
	id := r.append(entry)
	r.note(it, id)
	if m.Role == eventlog.RoleUser && id != "" && entry.Labels[transcript.LabelInjected] == "" {
		r.asked = append(r.asked, asked{id, len(textOf(it.Content))})
	}
	return nil
}

func (r *reader) result(entry transcript.Entry, it *item, output jsontext.Value, n *notes) error {
	r.reply = ""
	failed := false
	var object struct {
		Content jsontext.Value `json:"content"`
		Success *bool          `json:"success"`
	}
	if len(output) > 0 && output[0] == '{' && transcript.Decode(output, &object) == nil && len(object.Content) > 0 {
		output = object.Content
		failed = object.Success != nil && !*object.Success
	}
	blocks, err := content.ResultContent(output)
	if err != nil {
		return err
	}
	if len(blocks) > 0 {
		if t, ok := blocks[0].(eventlog.Text); ok && exitedWithError(t.Text) {
			failed = true
		}
	}
	if n != nil && n.IsError != nil {
		failed = *n.IsError
	}
	if it.CallID == "" && it.Type == "function_call_output" && len(blocks) > 0 {
		// It answers no call: a program wrote it to the model.
		injectedLabels(entry.Labels, nil)
		entry.Body = &eventlog.Message{Role: eventlog.RoleUser, Blocks: blocks}
		r.note(it, r.append(entry))
		return nil
	}
	entry.Body = &eventlog.Message{Role: eventlog.RoleTool, Blocks: []eventlog.Block{
		eventlog.ToolResult{CallID: it.CallID, Content: blocks, IsError: failed},
	}}
	r.note(it, r.append(entry))
	return nil
}

func (it *item) reasoning() string {
	parts := make([]string, 0, len(it.Summary))
	for _, s := range it.Summary {
		parts = append(parts, s.Text)
	}
	return content.OpenAIReasoningText(strings.Join(parts, "\n\n"), textOf(it.Content), it.EncryptedContent)
}

// textOf joins the texts of a content.
func textOf(raw jsontext.Value) string { return strings.Join(textsOf(raw), "\n") }

// filesChanged returns the files that a call of apply_patch names, one a line.
func filesChanged(c eventlog.ToolCall) string {
	if c.Name != "apply_patch" {
		return ""
	}
	return transcript.FilesChanged(transcript.PatchFiles(inputOf(c.Arguments)))
}

// inputOf returns the text in the arguments of a custom tool's call.
func inputOf(arguments string) string {
	var a struct {
		Input string `json:"input"`
	}
	if transcript.Decode([]byte(arguments), &a) != nil {
		return ""
	}
	return a.Input
}

// statusLines begin the line with a command's exit code near the beginning of an output.
var statusLines = []string{"Exit code: ", "Process exited with code "}

// statusWithin is how many bytes of an output are searched for the exit code.
const statusWithin = 400

// failures are the beginnings of outputs without an exit code that report a failure: of a patch, of a program
// that calls tools, of a command that could not be started.
var failures = []string{"apply_patch verification failed", "Script failed\n", "execution error: "}

// exitedWithError reports whether an output says that its command failed. Codex records failures in no other
// way.
func exitedWithError(output string) bool {
	if strings.HasPrefix(output, "{") {
		var o struct {
			Metadata struct {
				ExitCode int `json:"exit_code"`
			} `json:"metadata"`
		}
		return transcript.Decode([]byte(output), &o) == nil && o.Metadata.ExitCode != 0
	}
	if slices.ContainsFunc(failures, func(begin string) bool { return strings.HasPrefix(output, begin) }) {
		return true
	}
	head := output[:min(len(output), statusWithin)]
	for line := range strings.Lines(head) {
		line = strings.TrimSpace(line)
		if line == "Output:" {
			return false
		}
		for _, s := range statusLines {
			if code, ok := strings.CutPrefix(line, s); ok {
				return code != "0"
			}
		}
	}
	return false
}
