package cursor

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// chats makes a session of each chat, the oldest first. Chats of subagents come after all others.
func (t *table) chats() {
	var all []*chat
	seen := map[string]bool{}
	for _, r := range t.composers {
		c := &chat{out: t.out, row: r, bubbles: t.bubbles[r.key]}
		if err := transcript.Decode(r.value, &c.composer); err != nil {
			t.out.Warn(r.line, "the chat %.100s has an unexpected shape and was not read: %v", r.key, err)
			continue
		}
		if seen[r.key] {
			t.out.Warn(r.line, "the chat %.100s occurs twice; the first one was read", r.key)
			continue
		}
		seen[r.key] = true
		if len(c.composer.Headers)+len(c.composer.Conversation) == 0 {
			t.out.Skip("chat without messages")
			continue
		}
		all = append(all, c)
	}
	for key, bubbles := range t.bubbles {
		if !seen[key] {
			for range bubbles {
				t.out.Skip("bubble without a chat")
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *chat) int {
		rank := func(c *chat) int { return min(len(c.composer.Subagent.Parent), 1) }
		return cmp.Or(cmp.Compare(rank(a), rank(b)), a.composer.Created.Compare(b.composer.Created.Time))
	})
	for i, c := range all {
		kind := "chat-"
		if c.composer.Subagent.Parent != "" {
			kind = "sidechain-"
		}
		suffix := kind + plainID(c.row.key)
		if i == 0 && t.agent == nil {
			suffix = ""
		}
		c.session = t.out.Session(suffix)
		c.read()
	}
}

// plainID is an id that can be part of a session's suffix: the chat's own if it is a UUID, otherwise one
// derived from it.
func plainID(id string) string {
	if transcript.IsUUID(id) {
		return id
	}
	return transcript.UUID(Name, id)
}

// chat reads one chat into a session.
type chat struct {
	out      *transcript.Builder
	row      row
	bubbles  map[string]row
	composer composer
	session  *transcript.SessionBuilder
	group    string // of the reply that is being read
	call     string // id of the model call whose tools are being read; empty if unknown
	tools    bool   // a tool of the reply has been read
}

func (c *chat) read() {
	s := c.session
	s.Label(transcript.LabelHarness, Name)
	s.Label(transcript.LabelSessionID, c.row.key)
	s.Label(transcript.LabelWorkingDirectory, c.composer.Workspace.URI.Path)
	s.Label(transcript.LabelParentSession, c.composer.Subagent.Parent)
	s.Label("cursor.name", c.composer.Name)
	s.Label("cursor.mode", c.composer.Mode)
	s.SetParentCall(c.composer.Subagent.CallID)
	for i, raw := range c.composer.Conversation {
		c.bubble(row{fmt.Sprintf("bubble-%d", i+1), c.row.line, raw})
	}
	missing, read := 0, map[string]bool{}
	for _, h := range c.composer.Headers {
		b, ok := c.bubbles[h.ID]
		if !ok {
			missing++
			continue
		}
		read[h.ID] = true
		c.bubble(b)
	}
	if missing > 0 {
		c.out.Warn(c.row.line, "%d messages of the chat %.100s are not in the file", missing, c.row.key)
	}
	for id := range c.bubbles {
		if !read[id] {
			c.out.Skip("bubble that its chat does not name")
		}
	}
	if raw := c.composer.Summary; len(raw) > 0 && string(raw) != "null" {
		s.Record(transcript.Entry{Line: c.row.line, ID: "latest-summary", Native: raw}, "latest-summary")
	}
}

func (c *chat) bubble(r row) {
	entry := transcript.Entry{Line: r.line, ID: r.key, Native: r.value}
	var b bubble
	if err := transcript.Decode(r.value, &b); err != nil {
		c.out.Warn(r.line, "unexpected shape, kept as a custom event: %v", err)
		c.session.Custom(entry, "unreadable")
		return
	}
	if b.ID != "" {
		entry.ID = b.ID
	}
	entry.Time = b.Created.Time
	c.session.Label(transcript.LabelWorkingDirectory, b.directory())
	switch {
	case b.Capability == summarizedMarker:
		c.boundary(entry)
	case b.Type == bubbleUser:
		c.group = ""
		entry.Body = &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: b.Text}}}
		c.session.Append(entry)
	case b.Type == bubbleAssistant:
		c.reply(entry, &b)
	default:
		c.session.Keep(entry, "bubble")
	}
}

// boundary appends a compaction. Cursor keeps its summary on its servers, so that the compaction has neither
// a summary nor kept events.
func (c *chat) boundary(entry transcript.Entry) {
	c.group = ""
	c.session.Boundary(entry, &eventlog.Compaction{NativeJSON: markerOf(entry.Native)})
}

// reply appends a part of a reply and, if it is a tool call, the result after it. A new reply begins at a
// text or thought after a tool, or at a tool of another model call.
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
	m := &eventlog.Message{Role: eventlog.RoleAssistant, GroupID: c.group, Model: cmp.Or(b.Model.Name, c.composer.Model.Name), Blocks: b.thinking()}
	if b.Text != "" {
		m.Blocks = append(m.Blocks, eventlog.Text{Text: b.Text})
	}
	switch {
	case b.Tool != nil:
		c.tool(entry, b, m)
	case len(m.Blocks) == 0:
		c.out.Skip("bubble without content")
	default:
		entry.Labels, entry.Body = b.usage(), m
		c.session.Append(entry)
	}
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
	arguments := c.out.Arguments(entry.Line, b.Tool.CallID, raw)
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

// outcome returns a call's result; done is false while the call has not ended.
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

// marked are the members of a compaction's bubble that carry information; the others are empty lists that
// every bubble has.
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

// editors are Cursor's own tools that change files. The arguments that name the file have one name as the
// model wrote them, and another as the tool got them.
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

// filesChanged returns the file that a completed tool changed, as the model named it or else as the tool got
// it.
func (t *tool) filesChanged() []string {
	for _, raw := range [][]byte{t.RawArgs, t.Params} {
		if files := editors.Files(t.Name, []byte(text(raw))); len(files) > 0 {
			return files[:1]
		}
	}
	return nil
}
