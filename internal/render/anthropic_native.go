package render

import (
	"cmp"
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
	Type      string `json:"type"`
	Text      string `json:"text"`
	ID        string `json:"id"`
	Name      string `json:"name"`
	ToolUseID string `json:"tool_use_id"`
}

func readAnthropic(raw string) anthropicHead {
	var head anthropicHead
	if !eventlog.IsJSONObject(raw) || json.Unmarshal([]byte(raw), &head) != nil {
		return anthropicHead{}
	}
	return head
}

// anthropicNativeItem carries a provider's block unchanged if it is Anthropic's, its type may be in this place, and it
// has that type's form; else it describes it. Cache marks are removed, because the new request sets its own. A
// signature of Google's or a blank text makes no item.
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
	case anthropicSound(head.Type, b.JSON):
		return c.settle(i, head.Type, appendNative(nil, unmarked(b.JSON)))
	case head.Type == "text":
		return anthropicTextItem(c.foreign(i, b))
	default:
		return anthropicTextItem(c.describe(i, "not a valid "+head.Type))
	}
}

// anthropicServerItem is anthropicNativeItem for an assistant's message: the use of a server tool and its result are
// carried both or not at all, unless the API is still to answer.
func anthropicServerItem(c *content, i int, b eventlog.ProviderBlock, pairs map[int]bool) []byte {
	head := readAnthropic(b.JSON)
	_, across := c.across[cmp.Or(head.ToolUseID, head.ID)]
	if b.Provider == providerAnthropic && head.Type != "text" && !pairs[i] && !across {
		return anthropicTextItem(c.foreign(i, b))
	}
	return anthropicNativeItem(c, i, b, anthropicAssistantTypes)
}

// anthropicPairs are the indices of the blocks that use a server tool and have their
// result after them, and of these results. Of several with one id, only the first pair is among them, because ids are
// unique in a request's message.
func anthropicPairs(blocks []eventlog.Block) map[int]bool {
	type use struct {
		at     int
		result string // the type of its result
	}
	var open map[string]use
	var pairs map[int]bool
	for i, block := range blocks {
		b, ok := block.(eventlog.ProviderBlock)
		if !ok || b.Provider != providerAnthropic {
			continue
		}
		head := readAnthropic(b.JSON)
		if !anthropicAssistantTypes[head.Type] || head.Type == "text" || !anthropicSound(head.Type, b.JSON) {
			continue
		}
		if result, ok := head.resultType(); ok {
			if open == nil {
				open = map[string]use{}
			}
			if used, ok := open[head.ID]; !ok || !pairs[used.at] {
				open[head.ID] = use{i, result}
			}
		} else if asked, ok := open[head.ToolUseID]; ok && asked.result == head.Type && !pairs[asked.at] {
			if pairs == nil {
				pairs = map[int]bool{}
			}
			pairs[asked.at], pairs[i] = true, true
		}
	}
	return pairs
}

// resultType is the type of the result that answers a use of a server tool; false for what
// is no use.
func (h anthropicHead) resultType() (string, bool) {
	switch {
	case h.Type == "mcp_tool_use":
		return "mcp_tool_result", true
	case h.Type != "server_tool_use":
		return "", false
	case strings.HasPrefix(h.Name, "tool_search_tool_"):
		return "tool_search_tool_result", true
	default:
		return h.Name + "_tool_result", true
	}
}
