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

// anthropicBlock is a provider's block that was read once: fits says whether it is Anthropic's and its type may be in its
// place, sound whether it also has that type's form, and paired whether the message has it and its result, or its use.
type anthropicBlock struct {
	anthropicHead
	fits, sound, paired bool
}

func readBlock(b eventlog.ProviderBlock, types map[string]bool) anthropicBlock {
	head := readAnthropic(b.JSON)
	fits := b.Provider == providerAnthropic && types[head.Type]
	return anthropicBlock{anthropicHead: head, fits: fits, sound: fits && anthropicSound(head.Type, b.JSON)}
}

// anthropicNativeItem carries a provider's block unchanged if it is Anthropic's, its type may be in this place, and it
// has that type's form; else it describes it. Cache marks are removed, because the new request sets its own. A
// signature of Google's or a blank text makes no item.
func anthropicNativeItem(c *content, i int, b eventlog.ProviderBlock, read anthropicBlock) []byte {
	if _, ok := bareSignature(b); ok {
		c.converted(i, LeftOut, "reasoning of gemini")
		return nil
	}
	switch {
	case !read.fits:
		return anthropicTextItem(c.foreign(i, b))
	case read.Type == "text" && hollow(read.Text):
		c.converted(i, LeftOut, "text that says nothing")
		return nil
	case read.sound:
		return c.settle(i, read.Type, appendNative(nil, unmarked(b.JSON)))
	case read.Type == "text":
		return anthropicTextItem(c.foreign(i, b))
	default:
		return anthropicTextItem(c.describe(i, "not a valid "+read.Type))
	}
}

// anthropicServerItem is anthropicNativeItem for an assistant's message: the use of a server tool and its result are
// carried both or not at all, unless the API is still to answer.
func anthropicServerItem(c *content, i int, b eventlog.ProviderBlock, read anthropicBlock) []byte {
	_, across := c.across[cmp.Or(read.ToolUseID, read.ID)]
	if b.Provider == providerAnthropic && read.Type != "text" && !read.paired && !across {
		return anthropicTextItem(c.foreign(i, b))
	}
	return anthropicNativeItem(c, i, b, read)
}

// anthropicBlocks reads the providers' blocks of an assistant's message, each at its index; nil if there are none. Uses of
// server tools are paired with their result after them. Of several with one id, only the first pair is, because ids are
// unique in a request's message.
func anthropicBlocks(blocks []eventlog.Block) []anthropicBlock {
	type use struct {
		at     int
		result string // the type of its result
	}
	var open map[string]use
	var out []anthropicBlock
	for i, block := range blocks {
		b, ok := block.(eventlog.ProviderBlock)
		if !ok {
			continue
		}
		if out == nil {
			out = make([]anthropicBlock, len(blocks))
		}
		read := readBlock(b, anthropicAssistantTypes)
		out[i] = read
		if !read.sound || read.Type == "text" {
			continue
		}
		if result, ok := read.resultType(); ok {
			if open == nil {
				open = map[string]use{}
			}
			if used, ok := open[read.ID]; !ok || !out[used.at].paired {
				open[read.ID] = use{i, result}
			}
		} else if asked, ok := open[read.ToolUseID]; ok && asked.result == read.Type && !out[asked.at].paired {
			out[asked.at].paired, out[i].paired = true, true
		}
	}
	return out
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
