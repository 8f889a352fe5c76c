package gemini

import (
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// calls are the calls that were read. Newer versions write a result twice: inside its call, and as a message
// of the user.
type calls struct {
	// open are those without a result, by the file's id; their own ID is that of the log.
	open     map[string]toolCall
	answered map[string]bool
	// beside are the blocks that were read next to the results of the newest reply.
	beside map[eventlog.Block]bool
}

type toolCall struct {
	ID        string         `json:"id"`
	Name      string         `json:"name"`
	Args      jsontext.Value `json:"args"`
	Result    jsontext.Value `json:"result"`
	Status    string         `json:"status"`
	Timestamp string         `json:"timestamp"`
}

// editors are Gemini CLI's own.
var editors = transcript.Editors{"replace": {"file_path"}, "write_file": {"file_path"}}

// labels returns those of a call's result, which say which files the call changed.
func (c toolCall) labels() map[string]string {
	if c.Status != "success" {
		return nil
	}
	return transcript.WithFilesChanged(nil, editors.Files(c.Name, c.Args))
}

func (c toolCall) failed() bool { return c.Status == "error" || c.Status == "cancelled" }

// reply appends the model's message, and then the results that are inside its calls. Newer versions repeat
// thoughts and calls in the content, with their signatures; then only the content is read.
func (r *reader) reply(entry transcript.Entry, m *message, said []eventlog.Block) {
	var blocks []eventlog.Block
	if !slices.ContainsFunc(said, func(b eventlog.Block) bool { _, ok := b.(eventlog.Thinking); return ok }) {
		for _, t := range m.Thoughts {
			blocks = append(blocks, t.block())
		}
	}
	clear(r.calls.beside)
	inContent := map[string]string{} // ids in the log, by the file's
	for _, b := range said {
		switch c := b.(type) {
		case eventlog.ToolResult:
			continue // the model writes none
		case eventlog.ToolCall:
			id := r.session.ReserveCallID(c.CallID)
			inContent[c.CallID] = id
			r.calls.begin(c.CallID, toolCall{ID: id, Name: c.Name, Args: jsontext.Value(c.Arguments)})
			c.CallID, b = id, c
		}
		blocks = append(blocks, b)
	}
	ids := make([]string, len(m.ToolCalls))
	for i, c := range m.ToolCalls {
		if ids[i] = inContent[c.ID]; ids[i] != "" {
			delete(inContent, c.ID)
			continue
		}
		ids[i] = r.session.ReserveCallID(c.ID)
		r.calls.begin(c.ID, toolCall{ID: ids[i], Name: c.Name, Args: c.Args})
		blocks = append(blocks, eventlog.ToolCall{CallID: ids[i], Name: c.Name, Arguments: transcript.Compact(c.Args)})
	}
	message := entry
	message.Labels = m.Tokens.labels()
	message.Body = &eventlog.Message{Role: eventlog.RoleAssistant, GroupID: entry.ID, Model: m.Model, Blocks: blocks}
	r.session.Append(message)
	for i, c := range m.ToolCalls {
		result, ok := r.calls.inside(c)
		if !ok {
			continue // it may follow in a message of its own
		}
		answer := entry
		answer.ID = entry.ID + "/result-" + strconv.Itoa(i+1)
		if t := transcript.ParseTime(c.Timestamp); !t.IsZero() {
			answer.Time = t
		}
		answer.Labels = c.labels()
		answer.Body = &eventlog.Message{Role: eventlog.RoleTool, Blocks: []eventlog.Block{eventlog.ToolResult{
			CallID: ids[i], ToolName: c.Name, Content: result, IsError: c.failed(),
		}}}
		r.session.Append(answer)
	}
}

func (t thought) block() eventlog.Block {
	text := t.Subject
	if t.Subject != "" && t.Description != "" {
		text += "\n\n"
	}
	return eventlog.Thinking{Text: text + t.Description}
}

func (c *calls) begin(id string, call toolCall) {
	c.open[id] = call
	delete(c.answered, id)
}

func (c *calls) answer(id string) {
	delete(c.open, id)
	c.answered[id] = true
}

// inside returns the result in a call; ok is false if there is none. The list may hold the results of other calls,
// too; a text or media belongs to the result before it.
func (c *calls) inside(call toolCall) (blocks []eventlog.Block, ok bool) {
	if len(call.Result) == 0 || call.Result[0] == 'n' {
		return nil, false
	}
	parts, err := content.GoogleBlocks(call.Result)
	if err != nil {
		return nil, false
	}
	named := slices.ContainsFunc(parts, func(b eventlog.Block) bool {
		r, ok := b.(eventlog.ToolResult)
		return ok && r.CallID == call.ID
	})
	mine := !named
	for _, b := range parts {
		if r, result := b.(eventlog.ToolResult); result {
			if mine = !named || r.CallID == call.ID; mine {
				blocks = append(blocks, r.Content...)
			}
		} else if mine {
			blocks = append(blocks, b)
			c.beside[b] = true
		}
	}
	c.answer(call.ID)
	return blocks, true
}

// user appends the results of a user message that are not inside their calls, and then what it says besides.
func (r *reader) user(entry transcript.Entry, blocks []eventlog.Block) {
	var results, said []eventlog.Block
	var changed []string
	repeated := false
	for _, b := range blocks {
		if result, ok := b.(eventlog.ToolResult); ok {
			if repeated = r.calls.answered[result.CallID]; repeated {
				r.out.Skip("result that its call has")
				continue
			}
			if call, open := r.calls.open[result.CallID]; open {
				if !result.IsError {
					changed = append(changed, editors.Files(call.Name, call.Args)...)
				}
				r.calls.answer(result.CallID)
				result.CallID = call.ID
			}
			results = append(results, result)
			continue
		}
		last := len(results) - 1
		switch {
		case repeated && r.calls.beside[b]:
		case !repeated && last >= 0:
			result := results[last].(eventlog.ToolResult)
			result.Content = append(result.Content, b)
			results[last] = result
		default:
			said = append(said, b)
		}
	}
	if len(results) > 0 {
		answer := entry
		answer.Labels = transcript.WithFilesChanged(nil, changed)
		answer.Body = &eventlog.Message{Role: eventlog.RoleTool, Blocks: results}
		r.session.Append(answer)
		entry.ID += "/said"
	}
	if len(said) > 0 || len(blocks) == 0 {
		if entry.Labels = injectedLabels(said); entry.Labels == nil {
			entry.Beside(said, func(i int) bool {
				t, ok := said[i].(eventlog.Text)
				return ok && transcript.Inserted(t.Text, tags, tags)
			})
		}
		entry.Body = &eventlog.Message{Role: eventlog.RoleUser, Blocks: said}
		r.session.Append(entry)
	}
}
