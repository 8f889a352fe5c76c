package opencode2

import (
	"cmp"
	"encoding/base64"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	provider "github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// content is a part of the model's reply. A tool's part has the call and its result.
type content struct {
	Type   string `json:"type"`
	Text   string `json:"text"`
	Native native `json:"native"`
	Old    native `json:"state"` // of a tool: its state; in earlier versions what native is now
	ID     string `json:"id"`
	Name   string `json:"name"`
	Time   struct {
		Completed float64 `json:"completed"`
	} `json:"time"`
}

// native is what a provider needs again with a thinking, or the state of a tool.
type native struct {
	Signature        string `json:"signature"`
	ItemID           string `json:"itemId"`
	EncryptedContent string `json:"reasoningEncryptedContent"`
	RedactedData     string `json:"redactedData"`

	Status  string         `json:"status"`
	Input   jsontext.Value `json:"input"`
	Content []item         `json:"content"`
	Error   struct {
		Message string `json:"message"`
	} `json:"error"`
	// Structured is a result of earlier versions.
	Structured jsontext.Value `json:"structured"`
}

type item struct {
	Type string `json:"type"`
	Text string `json:"text"`
	URI  string `json:"uri"`
	MIME string `json:"mime"`
}

// editors are OpenCode's own, except patch.
var editors = transcript.Editors{"edit": {"path"}, "write": {"path"}}

// changed returns the files that a completed call changed.
func (c *content) changed() []string {
	if c.Old.Status != "completed" {
		return nil
	}
	if c.Name != "patch" && c.Name != "apply_patch" {
		return editors.Files(c.Name, c.Old.Input)
	}
	var input struct {
		Patch string `json:"patchText"`
	}
	if transcript.Decode(c.Old.Input, &input) != nil {
		return nil
	}
	return transcript.PatchFiles(input.Patch)
}

// reply appends a reply of the model, and then the results that are inside its calls.
func (r *reader) reply(entry transcript.Entry, m *message) {
	var blocks []eventlog.Block
	ids := make([]string, len(m.Content))
	for i := range m.Content {
		c := &m.Content[i]
		switch c.Type {
		case "text":
			blocks = append(blocks, eventlog.Text{Text: c.Text})
		case "reasoning":
			if t := c.thinking(); t != (eventlog.Thinking{}) {
				blocks = append(blocks, t)
			}
		case "tool":
			ids[i] = r.session.ReserveCallID(c.ID)
			arguments := transcript.Compact(c.Old.Input)
			if text, ok := transcript.Text(c.Old.Input); ok { // the call was not received to its end
				arguments = r.out.Arguments(entry.Line, c.ID, jsontext.Value(transcript.Quote(text)))
			}
			blocks = append(blocks, eventlog.ToolCall{CallID: ids[i], Name: c.Name, Arguments: arguments})
		default:
			kept := entry
			kept.ID += "/part-" + strconv.Itoa(i+1)
			r.session.Keep(kept, "part-"+c.Type)
		}
	}
	said := entry
	said.Labels = maps.Clone(entry.Labels)
	for name, value := range m.Tokens.labels() {
		said.Label(name, value)
	}
	said.Body = &eventlog.Message{Role: eventlog.RoleAssistant, GroupID: entry.ID, Model: m.Model.ID, Blocks: blocks}
	r.session.Append(said)
	for i := range m.Content {
		c := &m.Content[i]
		if c.Type != "tool" || c.Old.Status != "completed" && c.Old.Status != "error" {
			continue
		}
		answer := entry
		answer.ID += "/result-" + strconv.Itoa(i+1)
		if ms := int64(c.Time.Completed); ms > 0 {
			answer.Time = time.UnixMilli(ms).UTC()
		}
		answer.Labels = transcript.WithFilesChanged(maps.Clone(entry.Labels), c.changed())
		answer.Body = &eventlog.Message{Role: eventlog.RoleTool, Blocks: []eventlog.Block{eventlog.ToolResult{
			CallID: ids[i], ToolName: c.Name, Content: c.result(), IsError: c.Old.Status == "error",
		}}}
		r.session.Append(answer)
	}
}

func (c *content) thinking() eventlog.Thinking {
	n := c.Native
	if n.Signature == "" && n.EncryptedContent == "" && n.RedactedData == "" {
		n = c.Old
	}
	t := provider.OpenAIReasoning(c.Text, n.EncryptedContent, n.ItemID)
	t.Signature, t.RedactedData = cmp.Or(t.Signature, n.Signature), n.RedactedData
	return t
}

// result returns what the model got of a call.
func (c *content) result() []eventlog.Block {
	var blocks []eventlog.Block
	for _, i := range c.Old.Content {
		if i.Type == "text" && i.Text != "" {
			blocks = append(blocks, eventlog.Text{Text: i.Text})
		} else if b, ok := provider.DataURL(i.URI); ok && i.Type == "file" {
			if m, media := b.(eventlog.Media); media && m.MIMEType == "" {
				m.MIMEType = i.MIME
				b = m
			}
			blocks = append(blocks, b)
		}
	}
	if c.Old.Error.Message != "" {
		blocks = append(blocks, eventlog.Text{Text: c.Old.Error.Message})
	}
	if len(blocks) == 0 && len(c.Old.Structured) > 0 {
		blocks = append(blocks, eventlog.Text{Text: transcript.Compact(c.Old.Structured)})
	}
	return blocks
}

// file is what a user attached: its data in base64, or in earlier versions where it is.
type file struct {
	Data   string `json:"data"`
	URI    string `json:"uri"`
	MIME   string `json:"mime"`
	Name   string `json:"name"`
	Source struct {
		URI string `json:"uri"`
	} `json:"source"`
}

// asked returns what the model sees of a user's message.
func (m *message) asked() []eventlog.Block {
	var blocks []eventlog.Block
	if m.Text != "" {
		blocks = append(blocks, eventlog.Text{Text: m.Text})
	}
	for _, f := range m.Files {
		blocks = append(blocks, f.blocks()...)
	}
	for _, s := range m.Skills {
		if s.Text != "" {
			blocks = append(blocks, eventlog.Text{Text: s.Text})
		}
	}
	return blocks
}

func (f *file) blocks() []eventlog.Block {
	data, err := base64.StdEncoding.DecodeString(f.Data)
	switch {
	case err != nil || f.Data == "":
		if b, ok := provider.DataURL(f.URI); ok {
			return []eventlog.Block{b}
		}
		return nil
	case strings.HasPrefix(f.MIME, "text/") || f.MIME == "application/x-directory":
		name := f.Name
		if name == "" {
			name = f.Source.URI
		}
		return []eventlog.Block{eventlog.Text{Text: "Attached: " + name + "\n\n" + string(data)}}
	}
	return []eventlog.Block{eventlog.Media{MIMEType: f.MIME, Data: string(data)}}
}
