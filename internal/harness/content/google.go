package content

import (
	"cmp"
	"encoding/base64"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/provider"
)

// googlePart is one part of a content in Google's form.
type googlePart struct {
	Text       *string         `json:"text"`
	Thought    bool            `json:"thought"`
	Signature  string          `json:"thoughtSignature"`
	InlineData *googleFile     `json:"inlineData"`
	FileData   *googleFile     `json:"fileData"`
	Call       *googleCall     `json:"functionCall"`
	Response   *GoogleResponse `json:"functionResponse"`
	googlePartInPython
}

// googlePartInPython has the names of the same fields in files of Google's SDK for Python.
type googlePartInPython struct {
	PySignature  string          `json:"thought_signature"`
	PyInlineData *googleFile     `json:"inline_data"`
	PyFileData   *googleFile     `json:"file_data"`
	PyCall       *googleCall     `json:"function_call"`
	PyResponse   *GoogleResponse `json:"function_response"`
}

// googleFile is media: its data or its URI.
type googleFile struct {
	MIMEType   string `json:"mimeType"`
	PyMIMEType string `json:"mime_type"`
	Data       string `json:"data"`
	URI        string `json:"fileUri"`
	PyURI      string `json:"file_uri"`
}

type googleCall struct {
	ID   string         `json:"id"`
	Name string         `json:"name"`
	Args jsontext.Value `json:"args"`
}

// GoogleResponse is the result of a function call.
type GoogleResponse struct {
	ID       string         `json:"id"`
	Name     string         `json:"name"`
	Response jsontext.Value `json:"response"`
	Parts    jsontext.Value `json:"parts"`
}

// GoogleBlocks reads a content in Google's form: a string, a part, or a list of parts. The signature of a
// thought is the thinking block's own; any other becomes a provider block before the block that it seals, as
// in the log's form for Google. Calls and responses may have no id there; then their blocks have none.
func GoogleBlocks(raw jsontext.Value) ([]eventlog.Block, error) {
	return googleParts(raw, func(part googlePart, raw jsontext.Value) []eventlog.Block {
		if part.Thought && part.Text != nil {
			return []eventlog.Block{eventlog.Thinking{Text: *part.Text, Signature: part.Signature}}
		}
		var blocks []eventlog.Block
		switch {
		case part.Call != nil:
			blocks = []eventlog.Block{eventlog.ToolCall{CallID: part.Call.ID, Name: part.Call.Name, Arguments: transcript.Compact(part.Call.Args)}}
		case part.Response != nil:
			return []eventlog.Block{part.Response.Result()}
		default:
			block := part.said(raw)
			if _, native := block.(eventlog.ProviderBlock); native {
				return []eventlog.Block{block} // its JSON includes the signature
			}
			blocks = []eventlog.Block{block}
		}
		if part.Signature != "" {
			signature := eventlog.ProviderBlock{Provider: Google, JSON: transcript.Wrap("thoughtSignature", part.Signature)}
			blocks = append([]eventlog.Block{signature}, blocks...)
		}
		return blocks
	})
}

// GoogleTexts reads a content in Google's form whose calls and responses the harness also stores elsewhere:
// all but texts and media become provider blocks.
func GoogleTexts(raw jsontext.Value) ([]eventlog.Block, error) {
	return googleParts(raw, func(part googlePart, raw jsontext.Value) []eventlog.Block {
		return []eventlog.Block{part.said(raw)}
	})
}

func googleParts(raw jsontext.Value, blocks func(googlePart, jsontext.Value) []eventlog.Block) ([]eventlog.Block, error) {
	if len(raw) == 0 || raw[0] == 'n' {
		return nil, nil
	}
	list := []jsontext.Value{raw}
	if raw[0] != '"' && raw[0] != '{' {
		if err := transcript.Decode(raw, &list); err != nil {
			return nil, fmt.Errorf("content: %w", err)
		}
	}
	out := make([]eventlog.Block, 0, len(list))
	for _, value := range list {
		if text, ok := transcript.Text(value); ok {
			out = append(out, eventlog.Text{Text: text})
			continue
		}
		var part googlePart
		if err := transcript.Decode(value, &part); err != nil {
			return nil, fmt.Errorf("part: %w", err)
		}
		part.Signature = cmp.Or(part.Signature, part.PySignature)
		part.InlineData = cmp.Or(part.InlineData, part.PyInlineData)
		part.FileData = cmp.Or(part.FileData, part.PyFileData)
		part.Call = cmp.Or(part.Call, part.PyCall)
		part.Response = cmp.Or(part.Response, part.PyResponse)
		out = append(out, blocks(part, value)...)
	}
	return out, nil
}

// said is the text or the media of a part; any other part becomes a provider block.
func (p *googlePart) said(raw jsontext.Value) eventlog.Block {
	if p.Text != nil {
		return eventlog.Text{Text: *p.Text}
	}
	if file := cmp.Or(p.InlineData, p.FileData); file != nil {
		media := eventlog.Media{MIMEType: cmp.Or(file.MIMEType, file.PyMIMEType), URI: cmp.Or(file.URI, file.PyURI)}
		if data, err := base64.StdEncoding.DecodeString(provider.StandardBase64(file.Data)); err == nil {
			media.Data = string(data)
		}
		if media.Data != "" || media.URI != "" {
			return media
		}
	}
	return eventlog.ProviderBlock{Provider: Google, JSON: transcript.Compact(raw)}
}

// Result returns the response as a tool result.
func (r *GoogleResponse) Result() eventlog.ToolResult {
	blocks, failed := r.text()
	if media, err := GoogleTexts(r.Parts); err == nil {
		blocks = append(blocks, media...)
	}
	return eventlog.ToolResult{CallID: r.ID, ToolName: r.Name, Content: blocks, IsError: failed}
}

// text is the text of a response with the single member output, result or error; for any other response its JSON.
func (r *GoogleResponse) text() (blocks []eventlog.Block, failed bool) {
	var members map[string]jsontext.Value
	if transcript.Decode(r.Response, &members) == nil && len(members) == 1 {
		for _, name := range []string{"output", "result", "error"} {
			var text string
			if value, has := members[name]; has && transcript.Decode(value, &text) == nil {
				if text != "" {
					blocks = []eventlog.Block{eventlog.Text{Text: text}}
				}
				return blocks, name == "error"
			}
		}
	}
	return []eventlog.Block{eventlog.Text{Text: transcript.Compact(r.Response)}}, false
}

// googleResult reads a tool result from an object with a response, or with parts one of which is a response.
func googleResult(raw jsontext.Value) (result eventlog.ToolResult, ok bool) {
	var object struct {
		Response *GoogleResponse `json:"functionResponse"`
		Parts    jsontext.Value  `json:"responseParts"`
	}
	if transcript.Decode(raw, &object) != nil {
		return result, false
	}
	if object.Response != nil {
		return object.Response.Result(), true
	}
	blocks, err := GoogleBlocks(object.Parts)
	if err != nil {
		return result, false
	}
	for _, b := range blocks {
		if r, isResult := b.(eventlog.ToolResult); isResult {
			result.IsError = result.IsError || r.IsError
			result.Content, ok = append(result.Content, r.Content...), true
		} else {
			result.Content = append(result.Content, b)
		}
	}
	return result, ok
}
