package render

import (
	"encoding/json"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
)

// The types of Anthropic's own blocks that may be in a user's message, in a result,
// in a failed result and in an assistant's message.
var (
	anthropicUserTypes      = set("text", "image", "document", "search_result", "container_upload")
	anthropicResultTypes    = set("text", "image", "document", "search_result", "tool_reference")
	anthropicTextTypes      = set("text")
	anthropicAssistantTypes = set("text", "server_tool_use", "mcp_tool_use", "mcp_tool_result",
		"web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result",
		"bash_code_execution_tool_result", "text_editor_code_execution_tool_result", "tool_search_tool_result")
)

func set(all ...string) map[string]bool {
	out := make(map[string]bool, len(all))
	for _, s := range all {
		out[s] = true
	}
	return out
}

// anthropicHead is what says where a block of Anthropic's may be.
type anthropicHead struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	ToolUseID string          `json:"tool_use_id"`
	Source    json.RawMessage `json:"source"`
}

func readAnthropic(raw string) anthropicHead {
	var head anthropicHead
	if !eventlog.IsJSONObject(raw) || json.Unmarshal([]byte(raw), &head) != nil {
		return anthropicHead{}
	}
	return head
}

// anthropicNativeItem carries a provider's block as it came where it is Anthropic's and
// of a type that may be here, or describes it. Of a signature of Google's and of a
// text that says nothing it makes no item.
func anthropicNativeItem(c *content, i int, b eventlog.ProviderBlock, types map[string]bool) []byte {
	if _, ok := bareSignature(b); ok {
		c.converted(i, LeftOut, "reasoning of gemini")
		return nil
	}
	head := readAnthropic(b.JSON)
	switch {
	case b.Provider != providerAnthropic, !types[head.Type]:
		return anthropicTextItem(c.foreign(i, b))
	case head.Type == "text" && hollow(head.Text):
		c.converted(i, LeftOut, "text that says nothing")
		return nil
	case (head.Type == "image" || head.Type == "document") && !soundSource(head.Source):
		return anthropicTextItem(c.describe(i, "not a valid "+head.Type))
	default:
		return appendNative(nil, b.JSON)
	}
}

// anthropicData is where an image or a document of Anthropic's comes from.
type anthropicData struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

// soundSource reports whether a source holds what it says, if it holds anything.
func soundSource(raw json.RawMessage) bool {
	var s anthropicData
	if json.Unmarshal(raw, &s) != nil {
		return false
	}
	if s.Type != "base64" {
		return true
	}
	return (anthropicImages[s.MediaType] && len(s.Data) <= largestAnthropicImage || s.MediaType == "application/pdf") &&
		soundData(s.MediaType, s.Data)
}

// anthropicServerItem is anthropicNativeItem for an assistant's message, in which a use
// of a server tool and its result are together or not at all.
func anthropicServerItem(c *content, i int, b eventlog.ProviderBlock, pairs map[int]bool) []byte {
	head := readAnthropic(b.JSON)
	if b.Provider == providerAnthropic && head.Type != "text" && !pairs[i] {
		return anthropicTextItem(c.foreign(i, b))
	}
	return anthropicNativeItem(c, i, b, anthropicAssistantTypes)
}

// anthropicPairs are the indices of the blocks that use a server tool and have their
// result after them, and of these results.
func anthropicPairs(blocks []eventlog.Block) map[int]bool {
	open := map[string]int{}
	var pairs map[int]bool
	for i, block := range blocks {
		b, ok := block.(eventlog.ProviderBlock)
		if !ok || b.Provider != providerAnthropic {
			continue
		}
		head := readAnthropic(b.JSON)
		use, asked := open[head.ToolUseID]
		switch {
		case strings.HasSuffix(head.Type, "_tool_use") && serverID(head.ID):
			open[head.ID] = i
		case strings.HasSuffix(head.Type, "_tool_result") && asked:
			delete(open, head.ToolUseID)
			if pairs == nil {
				pairs = map[int]bool{}
			}
			pairs[use], pairs[i] = true, true
		}
	}
	return pairs
}

// serverID reports whether an id has the form of those that Anthropic gives.
func serverID(id string) bool {
	return allOf(id, wordByte) && (strings.HasPrefix(id, "srvtoolu_") || strings.HasPrefix(id, "mcptoolu_"))
}
