package content

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// OpenAI and Google name the provider in blocks that are carried as they came.
const (
	OpenAI = "openai"
	Google = "google"
)

type openAIPart struct {
	Type     string         `json:"type"`
	Text     string         `json:"text"`
	ImageURL jsontext.Value `json:"image_url"` // an object with url, or the url
}

// anthropicOnly are block types that only Anthropic's messages have.
var anthropicOnly = map[string]bool{
	"tool_use": true, "tool_result": true, "thinking": true, "redacted_thinking": true,
	"image": true, "document": true, "server_tool_use": true, "web_search_tool_result": true,
}

// ChatBlocks reads the content of a message in OpenAI's or Anthropic's form: a
// string, a list of parts, or a list of blocks.
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
	}
	return nil, false
}

// image reads a data URL or another one. An image with more than its URL, such as
// a wish for detail, is carried as it came.
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

// DataURL reads an image's URL: the data of a data URL, or else the URL itself.
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

// URL is that of an image or another file: its own, or one with its data.
func URL(m eventlog.Media) string {
	if m.Data == "" {
		return m.URI
	}
	return "data:" + m.MIMEType + ";base64," + base64.StdEncoding.EncodeToString([]byte(m.Data))
}

// ResultContent reads what a tool gave back: a string or a list of parts; empty
// texts are left out.
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

// longestItemID is the longest id of an item that is taken for the provider's.
const longestItemID = 64

// IsReasoningID reports whether an id is OpenAI's for an item of reasoning, which it
// wants back with what it sealed. It is the signature of such a block.
func IsReasoningID(id string) bool {
	rest, ok := strings.CutPrefix(id, "rs_")
	return ok && rest != "" && len(id) <= longestItemID && !strings.ContainsFunc(rest, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '_' && r != '-'
	})
}

// MadeUpReasoningID replaces an unknown id of what OpenAI sealed, and is recognised by it.
func MadeUpReasoningID(encrypted string) string {
	sum := sha256.Sum256([]byte(encrypted))
	return "rs_" + hex.EncodeToString(sum[:12])
}
