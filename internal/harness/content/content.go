// Package content reads message contents in the forms of the model providers, which harnesses store inside
// their transcripts: Anthropic's content blocks, OpenAI's content parts and Google's parts.
package content

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Anthropic is the provider of blocks that are kept in Anthropic's own JSON.
const Anthropic = "anthropic"

type anthropicBlock struct {
	Type      string         `json:"type"`
	Text      string         `json:"text"`
	Thinking  string         `json:"thinking"`
	Signature string         `json:"signature"`
	Data      string         `json:"data"`
	ID        string         `json:"id"`
	Name      string         `json:"name"`
	Input     jsontext.Value `json:"input"`
	ToolUseID string         `json:"tool_use_id"`
	Content   jsontext.Value `json:"content"`
	IsError   bool           `json:"is_error"`
	Source    *source        `json:"source"`
	// MediaType is of an image, and Path of a file whose text is the content, as Cline writes them.
	MediaType string `json:"mediaType"`
	Path      string `json:"path"`
	// Title and Context are of a document, Citations of a text or a document. The log's blocks have no fields
	// for them, so that a block with one is kept as a provider block.
	Title     jsontext.Value `json:"title"`
	Context   jsontext.Value `json:"context"`
	Citations jsontext.Value `json:"citations"`
}

type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
	URL       string `json:"url"`
}

// AnthropicBlocks reads a message's content: a string or a list of blocks. Thinking and its signature stay
// byte-exact; a tool's input loses only the whitespace between tokens; blocks without a counterpart in the
// log become provider blocks. An absent or null content gives no blocks.
func AnthropicBlocks(raw jsontext.Value) ([]eventlog.Block, error) {
	said, list, err := textOrList[anthropicBlock](raw)
	if err != nil || list == nil {
		return said, err
	}
	whole := &elements{raw: raw}
	blocks := make([]eventlog.Block, 0, len(list))
	for i := range list {
		block, err := list[i].block(i, whole)
		if err != nil {
			return nil, err
		}
		if block != nil {
			blocks = append(blocks, block)
		}
	}
	return blocks, nil
}

func (b *anthropicBlock) block(i int, whole *elements) (eventlog.Block, error) {
	switch b.Type {
	case "text":
		if present(b.Citations) {
			break
		}
		return eventlog.Text{Text: b.Text}, nil
	case "thinking":
		return eventlog.Thinking{Text: b.Thinking, Signature: b.Signature}, nil
	case "redacted_thinking":
		return eventlog.Thinking{RedactedData: b.Data}, nil
	case "tool_use":
		return eventlog.ToolCall{CallID: b.ID, Name: b.Name, Arguments: transcript.Compact(b.Input)}, nil
	case "tool_result":
		if len(b.Content) > 0 && b.Content[0] == '{' {
			return b.object(), nil
		}
		if untyped(b.Content) {
			text := eventlog.Text{Text: transcript.Compact(b.Content)}
			return eventlog.ToolResult{CallID: b.ToolUseID, Content: []eventlog.Block{text}, IsError: b.IsError}, nil
		}
		inner, err := AnthropicBlocks(b.Content)
		if err != nil {
			return nil, err
		}
		return eventlog.ToolResult{CallID: b.ToolUseID, Content: resultContent(inner, b.Content), IsError: b.IsError}, nil
	case "file":
		if text, ok := fileText(b.Path, b.Content); ok {
			return text, nil
		}
	case "image", "document":
		if b.Source == nil && b.Data != "" && b.MediaType != "" {
			b.Source = &source{Type: "base64", MediaType: b.MediaType, Data: b.Data}
		}
		if media, ok := b.Source.media(); ok && !present(b.Title) && !present(b.Context) && !present(b.Citations) {
			return media, nil
		}
	}
	native, err := whole.at(i)
	if err != nil {
		return nil, err
	}
	return eventlog.ProviderBlock{Provider: Anthropic, JSON: transcript.Compact(native)}, nil
}

// untyped reports whether a content is a list of a tool's own objects, in which there are no blocks.
func untyped(raw jsontext.Value) bool {
	var list []struct {
		Type *string `json:"type"`
	}
	return len(raw) > 0 && raw[0] == '[' && transcript.Decode(raw, &list) == nil && len(list) > 0 &&
		!slices.ContainsFunc(list, func(o struct {
			Type *string `json:"type"`
		}) bool {
			return o.Type != nil
		})
}

// fileText is a file that a user attached, as Cline sends it to the model; false if the block is of another form.
func fileText(path string, content jsontext.Value) (eventlog.Text, bool) {
	text, ok := transcript.Text(content)
	return eventlog.Text{Text: "<file_content path=\"" + path + "\">\n" + text + "\n</file_content>"}, ok && path != ""
}

// object reads a result whose content is an object: a response in Google's form, as iFlow CLI writes it, or
// any other JSON of a tool.
func (b *anthropicBlock) object() eventlog.ToolResult {
	result, ok := googleResult(b.Content)
	if !ok {
		result.Content = []eventlog.Block{eventlog.Text{Text: transcript.Compact(b.Content)}}
	}
	return eventlog.ToolResult{CallID: b.ToolUseID, Content: result.Content, IsError: result.IsError || b.IsError}
}

func (s *source) media() (eventlog.Media, bool) {
	if s == nil {
		return eventlog.Media{}, false
	}
	switch s.Type {
	case "base64":
		data, err := base64.StdEncoding.DecodeString(s.Data)
		if err != nil || len(data) == 0 {
			return eventlog.Media{}, false
		}
		return eventlog.Media{MIMEType: s.MediaType, Data: string(data)}, true
	case "url":
		return eventlog.Media{MIMEType: s.MediaType, URI: s.URL}, s.URL != ""
	}
	return eventlog.Media{}, false
}

// resultContent omits empty texts. If a tool result cannot hold one of the blocks, the whole content becomes
// one provider block.
func resultContent(blocks []eventlog.Block, raw jsontext.Value) []eventlog.Block {
	var out []eventlog.Block
	for _, b := range blocks {
		switch b := b.(type) {
		case eventlog.Text:
			if b.Text != "" {
				out = append(out, b)
			}
		case eventlog.Media, eventlog.ProviderBlock:
			out = append(out, b)
		default:
			return []eventlog.Block{eventlog.ProviderBlock{Provider: Anthropic, JSON: transcript.Compact(raw)}}
		}
	}
	return out
}

// elements decodes a list, when first asked for one, into the JSON of its elements.
type elements struct {
	raw  jsontext.Value
	list []jsontext.Value
}

func (e *elements) at(i int) (jsontext.Value, error) {
	if e.list == nil {
		if err := transcript.Decode(e.raw, &e.list); err != nil {
			return nil, fmt.Errorf("content: %w", err)
		}
	}
	return e.list[i], nil
}

func present(raw jsontext.Value) bool {
	return len(raw) > 0 && !bytes.Equal(raw, []byte("null")) && !bytes.Equal(raw, []byte("[]"))
}

// textOrList reads a content that is either a string or a list. said has the string, unless it is empty or
// absent; list is not nil if the content is a list.
func textOrList[T any](raw jsontext.Value) (said []eventlog.Block, list []T, err error) {
	if len(raw) == 0 || raw[0] == 'n' {
		return nil, nil, nil
	}
	if raw[0] != '"' {
		list = []T{}
		err = transcript.Decode(raw, &list)
	} else {
		var text string
		if err = transcript.Decode(raw, &text); text != "" {
			said = []eventlog.Block{eventlog.Text{Text: text}}
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("content: %w", err)
	}
	return said, list, nil
}

// OpenAI and Google are the providers of blocks that are kept in their own JSON.
const (
	OpenAI = "openai"
	Google = "google"
)

type openAIPart struct {
	Type     string         `json:"type"`
	Text     string         `json:"text"`
	ImageURL jsontext.Value `json:"image_url"` // an object with url, or the url
	// Path and Content are of a file that Cline attached.
	Path    string         `json:"path"`
	Content jsontext.Value `json:"content"`
}

// anthropicOnly are block types that only Anthropic's messages have.
var anthropicOnly = map[string]bool{
	"tool_use": true, "tool_result": true, "thinking": true, "redacted_thinking": true,
	"image": true, "document": true, "server_tool_use": true, "web_search_tool_result": true, "tool_reference": true,
}

// ChatBlocks reads a content in OpenAI's or Anthropic's form: a string, a list of parts, or a list of blocks.
func ChatBlocks(raw jsontext.Value) ([]eventlog.Block, error) {
	said, list, err := textOrList[openAIPart](raw)
	if err != nil || list == nil {
		return said, err
	}
	for _, part := range list {
		if anthropicOnly[part.Type] {
			return AnthropicBlocks(raw)
		}
	}
	whole := &elements{raw: raw}
	blocks := make([]eventlog.Block, 0, len(list))
	for i, part := range list {
		block, ok := part.block()
		if !ok {
			native, err := whole.at(i)
			if err != nil {
				return nil, err
			}
			block = eventlog.ProviderBlock{Provider: OpenAI, JSON: transcript.Compact(native)}
		}
		blocks = append(blocks, block)
	}
	return blocks, nil
}

func (p openAIPart) block() (eventlog.Block, bool) {
	switch p.Type {
	case "text", "input_text", "output_text":
		return eventlog.Text{Text: p.Text}, true
	case "image_url", "input_image":
		return p.image()
	case "file":
		if text, ok := fileText(p.Path, p.Content); ok {
			return text, true
		}
	}
	return nil, false
}

// image reads the URL of an image, which may be a data URL. An image with more fields than its URL, such as
// the detail wanted, has no counterpart: ok is false.
func (p openAIPart) image() (eventlog.Block, bool) {
	var url string
	if transcript.Decode(p.ImageURL, &url) != nil {
		var object map[string]string
		if transcript.Decode(p.ImageURL, &object) != nil || len(object) != 1 {
			return nil, false
		}
		url = object["url"]
	}
	return DataURL(url)
}

// DataURL reads an image's URL: it decodes a data URL, and keeps any other as it is.
func DataURL(url string) (eventlog.Block, bool) {
	rest, ok := strings.CutPrefix(url, "data:")
	if !ok {
		return eventlog.Media{URI: url}, url != ""
	}
	mime, data, ok := strings.Cut(rest, ";base64,")
	if !ok {
		return nil, false
	}
	decoded, err := base64.StdEncoding.DecodeString(data)
	if err != nil || len(decoded) == 0 {
		return nil, false
	}
	return eventlog.Media{MIMEType: mime, Data: string(decoded)}, true
}

// URL returns the URL of an image or another file; a data URL if the log has its data.
func URL(m eventlog.Media) string {
	if m.Data == "" {
		return m.URI
	}
	return "data:" + m.MIMEType + ";base64," + base64.StdEncoding.EncodeToString([]byte(m.Data))
}

// Readable returns a tool's result with blocks of other providers replaced by their JSON as text.
func Readable(blocks []eventlog.Block, provider string) []eventlog.Block {
	out := make([]eventlog.Block, len(blocks))
	for i, b := range blocks {
		if p, ok := b.(eventlog.ProviderBlock); ok && p.Provider != provider {
			b = eventlog.Text{Text: p.JSON}
		}
		out[i] = b
	}
	return out
}

// ResultContent reads what a tool returned: a string, an object or a list of parts; it omits empty texts.
func ResultContent(raw jsontext.Value) ([]eventlog.Block, error) {
	if len(raw) > 0 && raw[0] == '{' {
		return []eventlog.Block{eventlog.Text{Text: transcript.Compact(raw)}}, nil
	}
	blocks, err := ChatBlocks(raw)
	if err != nil {
		return nil, err
	}
	return resultContent(blocks, raw), nil
}
