package gemini

import (
	"encoding/base64"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

type toolCall struct {
	ID        string           `json:"id"`
	Name      string           `json:"name"`
	Args      jsontext.Value   `json:"args"`
	Result    []jsontext.Value `json:"result"`
	Status    string           `json:"status"`
	Timestamp string           `json:"timestamp"`
}

// editors are Gemini CLI's own.
var editors = transcript.Editors{"replace": {"file_path"}, "write_file": {"file_path"}}

// labels say which files a call changed.
func (c toolCall) labels() map[string]string {
	if c.Status != "success" {
		return nil
	}
	return transcript.WithFilesChanged(nil, editors.Files(c.Name, c.Args))
}

func (c toolCall) failed() bool { return c.Status == "error" || c.Status == "cancelled" }

// content is what the model got back; ok is false if it got nothing.
func (c toolCall) content() (blocks []eventlog.Block, ok bool) {
	for _, raw := range c.Result {
		var p struct {
			FunctionResponse *struct {
				Response jsontext.Value `json:"response"`
			} `json:"functionResponse"`
		}
		if transcript.Decode(raw, &p) == nil && p.FunctionResponse != nil {
			blocks = append(blocks, response(p.FunctionResponse.Response)...)
			continue
		}
		if b, err := part(raw); err == nil {
			blocks = append(blocks, b)
		}
	}
	return blocks, len(c.Result) > 0
}

// response reads a function's response: the text of one that holds nothing but
// output or error, else its JSON.
func response(raw jsontext.Value) []eventlog.Block {
	var members map[string]jsontext.Value
	if transcript.Decode(raw, &members) == nil && len(members) == 1 {
		for _, name := range []string{"output", "error"} {
			var text string
			if value, has := members[name]; has && transcript.Decode(value, &text) == nil {
				if text == "" {
					return nil
				}
				return []eventlog.Block{eventlog.Text{Text: text}}
			}
		}
	}
	return []eventlog.Block{eventlog.Text{Text: transcript.Compact(raw)}}
}

// parts reads content: a string, a part or a list of parts.
func parts(raw jsontext.Value) ([]eventlog.Block, error) {
	if len(raw) == 0 || raw[0] == 'n' {
		return nil, nil
	}
	switch raw[0] {
	case '"':
		b, err := part(raw)
		if t, ok := b.(eventlog.Text); ok && t.Text == "" {
			return nil, err
		}
		return []eventlog.Block{b}, err
	case '{':
		b, err := part(raw)
		return []eventlog.Block{b}, err
	}
	var list []jsontext.Value
	if err := transcript.Decode(raw, &list); err != nil {
		return nil, fmt.Errorf("content: %w", err)
	}
	blocks := make([]eventlog.Block, 0, len(list))
	for _, p := range list {
		b, err := part(p)
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, b)
	}
	return blocks, nil
}

func part(raw jsontext.Value) (eventlog.Block, error) {
	var text string
	if len(raw) > 0 && raw[0] == '"' {
		err := transcript.Decode(raw, &text)
		return eventlog.Text{Text: text}, err
	}
	var p struct {
		Text       *string `json:"text"`
		InlineData *struct {
			MIMEType string `json:"mimeType"`
			Data     string `json:"data"`
		} `json:"inlineData"`
		FileData *struct {
			MIMEType string `json:"mimeType"`
			URI      string `json:"fileUri"`
		} `json:"fileData"`
	}
	if err := transcript.Decode(raw, &p); err != nil {
		return nil, fmt.Errorf("part: %w", err)
	}
	switch {
	case p.Text != nil:
		return eventlog.Text{Text: *p.Text}, nil
	case p.InlineData != nil:
		if data, err := base64.StdEncoding.DecodeString(p.InlineData.Data); err == nil && len(data) > 0 {
			return eventlog.Media{MIMEType: p.InlineData.MIMEType, Data: string(data)}, nil
		}
	case p.FileData != nil && p.FileData.URI != "":
		return eventlog.Media{MIMEType: p.FileData.MIMEType, URI: p.FileData.URI}, nil
	}
	return eventlog.ProviderBlock{Provider: content.Google, JSON: transcript.Compact(raw)}, nil
}
